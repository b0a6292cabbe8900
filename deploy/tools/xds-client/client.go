// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// What outlives a stream.
type client struct {
	node *core.Node
	// By type, in the order in which they were first asked for.
	order []string
	types map[string]*subscription
	// Why the next response is refused.
	refusal string
}

// Names that are asked for, and versions that were accepted.
type subscription struct {
	names map[string]bool
	held  map[string]string
}

func newClient(node *core.Node) *client {
	return &client{node: node, types: map[string]*subscription{}}
}

type deltaStream = discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient

// Plays one stream to its end, and says why it ended; nil after the last command.
func (c *client) stream(service discovery.AggregatedDiscoveryServiceClient, commands <-chan command) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := service.DeltaAggregatedResources(ctx, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	for _, url := range c.order {
		if err := stream.Send(c.resumption(url)); err != nil {
			return received(stream)
		}
	}
	responses, failed := make(chan *discovery.DeltaDiscoveryResponse), make(chan error, 1)
	go receive(ctx, stream, responses, failed)
	for {
		var answer *discovery.DeltaDiscoveryRequest
		select {
		case next, more := <-commands:
			if !more {
				return nil
			}
			if answer = c.obey(next); answer == nil {
				continue
			}
		case response := <-responses:
			answer = c.take(response)
		case err := <-failed:
			return err
		}
		if err := stream.Send(answer); err != nil {
			return received(stream)
		}
	}
}

func receive(ctx context.Context, stream deltaStream, responses chan<- *discovery.DeltaDiscoveryResponse, failed chan<- error) {
	for {
		response, err := stream.Recv()
		if err != nil {
			failed <- err
			return
		}
		select {
		case responses <- response:
		case <-ctx.Done():
			return
		}
	}
}

// Sending tells that a stream has ended, receiving tells why.
func received(stream deltaStream) error {
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

// The first request of a type on a new stream: names, and what is held of them.
func (c *client) resumption(url string) *discovery.DeltaDiscoveryRequest {
	asked := c.types[url]
	return &discovery.DeltaDiscoveryRequest{
		Node:                    c.node,
		TypeUrl:                 url,
		ResourceNamesSubscribe:  slices.Sorted(maps.Keys(asked.names)),
		InitialResourceVersions: asked.held,
	}
}

// Changes what is asked for. None where only a refusal is prepared.
func (c *client) obey(next command) *discovery.DeltaDiscoveryRequest {
	if next.Refuse != "" {
		c.refusal = next.Refuse
		return nil
	}
	asked := c.types[next.Type]
	if asked == nil {
		asked = &subscription{names: map[string]bool{}, held: map[string]string{}}
		c.types[next.Type] = asked
		c.order = append(c.order, next.Type)
	}
	for _, name := range next.Subscribe {
		asked.names[name] = true
	}
	for _, name := range next.Unsubscribe {
		delete(asked.names, name)
		delete(asked.held, name)
	}
	return &discovery.DeltaDiscoveryRequest{
		Node:                     c.node,
		TypeUrl:                  next.Type,
		ResourceNamesSubscribe:   next.Subscribe,
		ResourceNamesUnsubscribe: next.Unsubscribe,
	}
}

// Says what came, keeps it where it is accepted, and answers.
func (c *client) take(response *discovery.DeltaDiscoveryResponse) *discovery.DeltaDiscoveryRequest {
	came := line{
		Type:      response.TypeUrl,
		Nonce:     response.Nonce,
		Resources: map[string]string{},
		Removed:   response.RemovedResources,
	}
	for _, resource := range response.Resources {
		came.Resources[resource.Name] = resource.Version
		if err := check(response.TypeUrl, resource); err != nil {
			came.Invalid = fmt.Sprintf("%s: %v", resource.Name, err)
		}
	}
	say(came)
	answer := &discovery.DeltaDiscoveryRequest{Node: c.node, TypeUrl: response.TypeUrl, ResponseNonce: response.Nonce}
	refusal := came.Invalid
	if refusal == "" {
		refusal, c.refusal = c.refusal, ""
	}
	if refusal != "" {
		answer.ErrorDetail = &rpc.Status{Code: int32(codes.InvalidArgument), Message: refusal}
		return answer
	}
	if asked := c.types[response.TypeUrl]; asked != nil {
		maps.Copy(asked.held, came.Resources)
		for _, name := range came.Removed {
			delete(asked.held, name)
		}
	}
	return answer
}
