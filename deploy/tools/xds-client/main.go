// SPDX-License-Identifier: Apache-2.0

// A client of aggregated discovery made of go-control-plane's own types: a second opinion on the protocol, by code
// that was not written with weir-control's. It does what it is told on standard input, a JSON object a line, and
// says what it got on standard output in the same way.
//
//	commands ──> subscriptions, refusals ──> stream (delta) ──> ACK or NACK
//	                                            │ ended: a new one goes on with the versions of the last
//	                                            └──> lines
//
// With -sotw it asks once by go-control-plane's client of the state-of-the-world protocol, and ends.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"os"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/client/sotw/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// Between the end of a stream and the next one.
const pause = 50 * time.Millisecond

// A line of standard input.
type command struct {
	Type        string   `json:"type"`
	Subscribe   []string `json:"subscribe"`
	Unsubscribe []string `json:"unsubscribe"`
	// Why the next response is refused.
	Refuse string `json:"refuse"`
}

// A line of standard output: a response, or how a stream ended.
type line struct {
	Type      string            `json:"type,omitempty"`
	Nonce     string            `json:"nonce,omitempty"`
	Resources map[string]string `json:"resources,omitempty"`
	Removed   []string          `json:"removed,omitempty"`
	// Why the client refuses it unasked.
	Invalid string `json:"invalid,omitempty"`
	Ended   string `json:"ended,omitempty"`
	Message string `json:"message,omitempty"`
}

func main() {
	server := flag.String("server", "", "ip:port of the discovery server")
	id := flag.String("node", "", "Node.id")
	whole := flag.Bool("sotw", false, "ask once by the state-of-the-world protocol")
	flag.Parse()

	connection, err := grpc.NewClient(*server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	node := &core.Node{Id: *id}
	if *whole {
		say(ended(askOnce(connection, node)))
		return
	}
	commands := make(chan command)
	go read(commands)
	client := newClient(node)
	for {
		end := client.stream(discovery.NewAggregatedDiscoveryServiceClient(connection), commands)
		if end == nil {
			return
		}
		say(ended(end))
		time.Sleep(pause)
	}
}

// The end of the input closes the channel, and with it the client.
func read(commands chan<- command) {
	defer close(commands)
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		var next command
		if err := json.Unmarshal(input.Bytes(), &next); err != nil {
			log.Fatal(err)
		}
		commands <- next
	}
}

func askOnce(connection *grpc.ClientConn, node *core.Node) error {
	client := sotw.NewADSClient(context.Background(), node, resource.ClusterType)
	// Sending tells that a stream has ended, receiving tells why.
	if err := client.InitConnect(connection, grpc.WaitForReady(true)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err := client.Fetch()
	return err
}

func ended(err error) line {
	end := status.Convert(err)
	return line{Ended: end.Code().String(), Message: end.Message()}
}

func say(what line) {
	if err := json.NewEncoder(os.Stdout).Encode(what); err != nil {
		log.Fatal(err)
	}
}
