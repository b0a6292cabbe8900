// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
)

// A message with the rules that Envoy's protobuf files give its fields.
type ruled interface {
	proto.Message
	Validate() error
}

// Whether a resource is of its response's type and, where that is known here, keeps its rules.
func check(url string, of *discovery.Resource) error {
	if of.Resource == nil {
		return errors.New("no resource")
	}
	if of.Resource.TypeUrl != url {
		return fmt.Errorf("is a %s", of.Resource.TypeUrl)
	}
	var message ruled
	switch url {
	case resource.ClusterType:
		message = &cluster.Cluster{}
	case resource.EndpointType:
		message = &endpoint.ClusterLoadAssignment{}
	default:
		return nil
	}
	if err := of.Resource.UnmarshalTo(message); err != nil {
		return err
	}
	return message.Validate()
}
