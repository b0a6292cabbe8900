// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What is known of one host.
type row struct {
	address     string
	asked       time.Time
	inProgress  uint64
	queued      uint64
	waitSeconds float64
	waits       float64
	delay       time.Duration
}

// As weir-control does: one poll at a time, 500 ms for each, jitter of 10 %.
func scrape(address string, interval time.Duration, rows chan<- row) {
	client := http.Client{Timeout: 500 * time.Millisecond, Transport: &http.Transport{}}
	var last row
	time.Sleep(time.Duration(rand.Float64() * 0.25 * float64(interval)))
	for {
		started := time.Now()
		if next, err := read(&client, address, started); err != nil {
			log.Print(err)
		} else {
			if waits := next.waits - last.waits; waits > 0 {
				next.delay = time.Duration((next.waitSeconds - last.waitSeconds) / waits * float64(time.Second))
			}
			last = next
			rows <- next
		}
		jitter := 0.9 + 0.2*rand.Float64()
		time.Sleep(time.Until(started.Add(time.Duration(jitter * float64(interval)))))
	}
}

func read(client *http.Client, address string, asked time.Time) (row, error) {
	answer, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		return row{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return row{}, fmt.Errorf("http://%s/metrics: %s", address, answer.Status)
	}
	found := row{address: address, asked: asked}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if err := found.take(lines.Text()); err != nil {
			return row{}, fmt.Errorf("http://%s/metrics: %w", address, err)
		}
	}
	return found, lines.Err()
}

// Takes in a line of the page, if it is one of those that matter.
func (r *row) take(line string) error {
	if strings.HasPrefix(line, "#") {
		return nil
	}
	name, text, found := strings.Cut(line, " ")
	if !found {
		return nil
	}
	name, _, _ = strings.Cut(name, "{")
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return err
	}
	switch name {
	case "weir_host_in_progress":
		r.inProgress = uint64(value)
	case "weir_host_queued":
		r.queued += uint64(value)
	case "weir_host_queuing_delay_seconds_sum":
		r.waitSeconds = value
	case "weir_host_queuing_delay_seconds_count":
		r.waits = value
	}
	return nil
}
