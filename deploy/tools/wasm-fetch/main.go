// SPDX-License-Identifier: Apache-2.0

// Fetches a Wasm image by Envoy Gateway's own code, which it has from Istio, and writes the module to standard output
// and the image's digest to standard error. The module's path lets it import what is internal there.
package main

import (
	"context"
	"fmt"
	"os"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"github.com/envoyproxy/gateway/internal/logging"
	"github.com/envoyproxy/gateway/internal/wasm"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(reference string) error {
	logger := logging.NewLogger(os.Stderr, egv1a1.DefaultEnvoyGatewayLogging())
	fetcher, err := wasm.NewImageFetcher(context.Background(), wasm.ImageFetcherOption{}, logger)
	if err != nil {
		return err
	}
	fetch, digest, err := fetcher.PrepareFetch(reference)
	if err != nil {
		return err
	}
	module, err := fetch()
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, digest)
	_, err = os.Stdout.Write(module)
	return err
}
