// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log"
	"slices"
	"time"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The cluster, and the name of the one resource with all hosts.
const cluster = "rules"

// Field numbers of filters/tables/proto/weir/v1/tables.proto.
const (
	tableHosts     = 5
	hostAddress    = 1
	hostState      = 2
	hostLoad       = 3
	loadAge        = 1
	loadInProgress = 2
	loadQueued     = 3
	loadDelay      = 4

	up = 1
)

// One call of UpdateResources for all changes of a tick, which the cache's documentation asks for.
func push(linear *cache.LinearCache, rows <-chan row, every time.Duration, whole bool) {
	known := map[string]row{}
	changed := map[string]row{}
	for tick := time.Tick(every); ; {
		select {
		case next := <-rows:
			changed[next.address] = next
		case now := <-tick:
			if len(changed) == 0 {
				continue
			}
			update := map[string]types.Resource{}
			for address, row := range changed {
				known[address] = row
				update[address] = resource(row.append(nil, now))
			}
			if whole {
				update = map[string]types.Resource{cluster: resource(table(known, now))}
			}
			if err := linear.UpdateResources(update, nil); err != nil {
				log.Fatal(err)
			}
			clear(changed)
		}
	}
}

// A message of which the cache has to encode nothing: what it does not know of is copied as it is.
func resource(encoded []byte) types.Resource {
	message := &emptypb.Empty{}
	message.ProtoReflect().SetUnknown(encoded)
	return message
}

func table(rows map[string]row, now time.Time) []byte {
	addresses := make([]string, 0, len(rows))
	for address := range rows {
		addresses = append(addresses, address)
	}
	slices.Sort(addresses)
	var encoded []byte
	for _, address := range addresses {
		encoded = rows[address].append(encoded, now)
	}
	return encoded
}

// Appends a weir.v1.HostTable of this host alone: messages that follow each other are merged.
func (r row) append(to []byte, now time.Time) []byte {
	var load, host []byte
	load = number(load, loadAge, uint64(now.Sub(r.asked).Milliseconds()))
	load = number(load, loadInProgress, r.inProgress)
	load = bytes(load, loadQueued, protowire.AppendVarint(nil, r.queued))
	load = number(load, loadDelay, uint64(r.delay.Microseconds()))
	host = bytes(host, hostAddress, []byte(r.address))
	host = number(host, hostState, up)
	host = bytes(host, hostLoad, load)
	return bytes(to, tableHosts, host)
}

func number(to []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, field, protowire.VarintType), value)
}

func bytes(to []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), value)
}
