// SPDX-License-Identifier: Apache-2.0

// A host for Weir, by the contract in README.md: go run host.go PORT [CORES]. Sleeping stands for its work.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	keys       = 100 // that the cache has room for
	fetch, run = 50 * time.Millisecond, 10 * time.Millisecond
)

var (
	classes              = map[string]int{"high": 0, "low": 16} // as `priorities` in the filter's configuration
	lock                 sync.Mutex
	core                 chan struct{} // holds a token for each busy core
	queued               = map[int]int{0: 0, 16: 0}
	waiting, busy, jobs  int
	waited, delay        time.Duration
	cached               []string // oldest first
	epoch, version, kept = rand.Uint32(), 0, 0
	changes              []string // the key of each change since version `kept`
)

func page() (text string) {
	for class, number := range queued {
		text += fmt.Sprintf("weir_host_queued{priority=\"%d\"} %d\n", class, number)
	}
	return text + fmt.Sprintf("weir_host_in_progress %d\nweir_host_busy_cores %d\nweir_host_cores %d\n"+
		"weir_host_queuing_delay_seconds_sum %g\nweir_host_queuing_delay_seconds_count %d\n",
		busy+waiting, busy, cap(core), waited.Seconds(), jobs)
}

func orca() string {
	text := fmt.Sprintf("TEXT named_metrics.weir.in_progress=%d,named_metrics.weir.busy_cores=%d,"+
		"named_metrics.weir.queuing_delay_seconds=%g", busy+waiting, busy, delay.Seconds())
	for class, number := range queued {
		text += fmt.Sprintf(",named_metrics.weir.queued.%d=%d", class, number)
	}
	return text
}

// The net change since `since`; everything where that is not known.
func contents(request *http.Request) any {
	since, _ := strconv.Atoi(request.FormValue("since"))
	reset := request.FormValue("epoch") != fmt.Sprint(epoch) || since < kept || since > version
	changed, added, removed := cached, []string{}, []string{}
	if !reset {
		changed = slices.Compact(slices.Sorted(slices.Values(changes[since-kept:])))
	}
	for _, key := range changed {
		if slices.Contains(cached, key) {
			added = append(added, key)
		} else {
			removed = append(removed, key)
		}
	}
	return map[string]any{"version": version, "epoch": epoch, "reset": reset, "added": added, "removed": removed}
}

func keep(key string) {
	cached, changes = append(cached, key), append(changes, key)
	if len(cached) > keys {
		cached, changes = cached[1:], append(changes, cached[0])
	}
	version = kept + len(changes)
	if forgotten := len(changes) - 1000; forgotten > 0 {
		changes, kept = changes[forgotten:], kept+forgotten
	}
}

func job(answer http.ResponseWriter, request *http.Request) {
	_, _ = io.Copy(io.Discard, request.Body)
	key := request.Header.Get("x-weir-key")
	class, known := classes[request.Header.Get("x-weir-priority")]
	if !known {
		class = 16
	}
	bound, _, _ := strings.Cut(request.Header.Get("x-weir-may-wait"), ";")
	lock.Lock()
	defer lock.Unlock()
	wait := run * time.Duration(waiting+1) / time.Duration(cap(core))
	if micros, err := strconv.Atoi(bound); err == nil && busy == cap(core) && wait.Microseconds() > int64(micros) {
		answer.Header().Set("x-weir-bounced", "1")
		answer.Header().Set("endpoint-load-metrics", orca())
		answer.WriteHeader(http.StatusTooManyRequests)
		return
	}
	queued[class], waiting = queued[class]+1, waiting+1
	lock.Unlock()
	came := time.Now()
	core <- struct{}{}
	lock.Lock()
	delay = time.Since(came)
	queued[class], waiting, busy = queued[class]-1, waiting-1, busy+1
	waited, jobs = waited+delay, jobs+1
	costs, took := fmt.Sprintf(",request_cost.weir.run_seconds=%g", run.Seconds()), run
	misses := key != "" && !slices.Contains(cached, key)
	if misses {
		costs, took = costs+fmt.Sprintf(",request_cost.weir.fetch_seconds=%g", fetch.Seconds()), run+fetch
	}
	lock.Unlock()
	time.Sleep(took)
	<-core
	lock.Lock()
	busy--
	if misses && !slices.Contains(cached, key) {
		keep(key)
	}
	answer.Header().Set("endpoint-load-metrics", orca()+costs)
	fmt.Fprintf(answer, "data of %s\n", key)
}

func main() {
	cores := 2
	if len(os.Args) > 2 {
		cores, _ = strconv.Atoi(os.Args[2])
	}
	core = make(chan struct{}, cores)
	http.HandleFunc("/", job)
	http.HandleFunc("/metrics", func(answer http.ResponseWriter, _ *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		_, _ = io.WriteString(answer, page())
	})
	http.HandleFunc("/cache", func(answer http.ResponseWriter, request *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		_ = json.NewEncoder(answer).Encode(contents(request))
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
	os.Exit(1)
}
