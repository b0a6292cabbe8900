// SPDX-License-Identifier: Apache-2.0

// The linear cache of go-control-plane as a server that does what weir-control does in the bench:
// it reads the load of hosts and pushes it to sidecars over delta xDS.
//
//	scrape (one goroutine a host) ─> changes ─ every -publish ─> LinearCache ─> delta ADS
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"net"
	"os"
	"strings"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

const typeURL = "type.googleapis.com/weir.v1.HostTable"

func main() {
	hostsFile := flag.String("hosts", "", "file with the hosts' addresses, one a line")
	portsFile := flag.String("ports-file", "", "where to write {\"xds\":\"ip:port\"}")
	interval := flag.Duration("interval", time.Second, "between two scrapes of a host, ±10 %")
	publish := flag.Duration("publish", 100*time.Millisecond, "changes within this time go out together")
	whole := flag.Bool("whole", false, "one resource with all hosts instead of a resource a host")
	flag.Parse()

	text, err := os.ReadFile(*hostsFile)
	if err != nil {
		log.Fatal(err)
	}
	hosts := strings.Fields(string(text))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}

	linear := cache.NewLinearCache(typeURL)
	rows := make(chan row, len(hosts))
	for _, host := range hosts {
		go scrape(host, *interval, rows)
	}
	go push(linear, rows, *publish, *whole)

	// The same pings as weir-control's.
	service := grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{Time: 5 * time.Second, Timeout: 2 * time.Second}))
	discovery.RegisterAggregatedDiscoveryServiceServer(service, server.NewServer(context.Background(), linear, nil))
	if err := announce(*portsFile, listener.Addr().String()); err != nil {
		log.Fatal(err)
	}
	log.Fatal(service.Serve(listener))
}

// Whoever waits for the file never sees half of it.
func announce(file, address string) error {
	text, err := json.Marshal(map[string]string{"xds": address})
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".partial", text, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".partial", file)
}
