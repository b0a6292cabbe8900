// SPDX-License-Identifier: Apache-2.0
//! Pages of engines, as their sources have them.

use super::*;

/// As the engine's names are configured.
fn by(engine: &str, page: &str) -> Page {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    let hosts = "hosts: [ { address: \"127.0.0.1:9001\" } ]";
    let scrape = format!("scrape: {{ metrics: {{ engine: {engine} }} }}");
    std::fs::write(
        &path,
        format!("clusters: {{ m: {{ {hosts}, {scrape} }} }}\n"),
    )
    .unwrap();
    let loaded = crate::config::load(&path);
    let config = loaded
        .map(|loaded| loaded.config)
        .map_err(|(error, _)| error);
    let config = config.unwrap();
    read(page, config.clusters["m"].scrape.as_ref().unwrap())
}

/// Labels as of its page for several processes; gauges have the process's besides.
const TRTLLM: &str = "\
# HELP trtllm_request_queue_time_seconds Histogram of time spent in WAITING phase for request.
# TYPE trtllm_request_queue_time_seconds histogram
trtllm_request_queue_time_seconds_sum{engine_type=\"undefined\",model_name=\"undefined\"} 1.5
trtllm_request_queue_time_seconds_bucket{engine_type=\"undefined\",le=\"0.3\",model_name=\"undefined\"} 4.0
trtllm_request_queue_time_seconds_bucket{engine_type=\"undefined\",le=\"+Inf\",model_name=\"undefined\"} 6.0
trtllm_request_queue_time_seconds_count{engine_type=\"undefined\",model_name=\"undefined\"} 6.0
# TYPE trtllm_request_prefill_time_seconds histogram
trtllm_request_prefill_time_seconds_sum{engine_type=\"undefined\",model_name=\"undefined\"} 3.25
trtllm_request_prefill_time_seconds_bucket{engine_type=\"undefined\",le=\"+Inf\",model_name=\"undefined\"} 6.0
trtllm_request_prefill_time_seconds_count{engine_type=\"undefined\",model_name=\"undefined\"} 6.0
# TYPE trtllm_request_decode_time_seconds histogram
trtllm_request_decode_time_seconds_sum{engine_type=\"undefined\",model_name=\"undefined\"} 60.5
trtllm_request_decode_time_seconds_bucket{engine_type=\"undefined\",le=\"+Inf\",model_name=\"undefined\"} 6.0
trtllm_request_decode_time_seconds_count{engine_type=\"undefined\",model_name=\"undefined\"} 6.0
# TYPE trtllm_kv_cache_utilization gauge
trtllm_kv_cache_utilization{engine_type=\"undefined\",model_name=\"undefined\",pid=\"71\"} 0.25
# TYPE trtllm_num_requests_running gauge
trtllm_num_requests_running{engine_type=\"undefined\",model_name=\"undefined\",pid=\"71\"} 5.0
# TYPE trtllm_num_requests_waiting gauge
trtllm_num_requests_waiting{engine_type=\"undefined\",model_name=\"undefined\",pid=\"71\"} 2.0
";

#[test]
fn of_trtllm_serve_all_figures_are_read() {
    let page = by("trtllm", TRTLLM);
    assert_eq!(page.complaints, Vec::<String>::new());
    assert_eq!((page.in_progress, page.queued), (Some(7), Some(vec![2])));
    let totals = |seconds, jobs| Some(Totals { seconds, jobs });
    assert_eq!(
        (page.delay, page.reading),
        (totals(1.5, 6.0), totals(3.25, 6.0))
    );
    assert_eq!(page.writing, totals(60.5, 6.0));
}

#[test]
fn a_wait_that_is_told_when_its_answer_is_done_is_not_that_of_the_queue() {
    let of = |ended: u32| {
        format!(
            "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n\
             vllm:request_queue_time_seconds_sum {}\nvllm:request_queue_time_seconds_count {ended}\n",
            20 * ended
        )
    };
    let mut window = crate::sources::scrape::Window::default();
    let begin = std::time::Instant::now();
    let mut scraped = |engine: &str, page: &str, seconds| {
        let at = begin + std::time::Duration::from_secs(seconds);
        crate::sources::scrape::scraped(by(engine, page), &mut window, at)
    };
    scraped("vllm", &of(1), 0);
    let seen = scraped("vllm", &of(4), 1);
    assert_eq!(seen.figures.delay_of_now(), None, "nothing waits");
    assert!(seen.figures.queuing_delay.is_some(), "better than nothing");
    assert_eq!(seen.left_queue.map(|(jobs, _)| jobs), Some(3.0));
    let without_queue = of(6).replace("vllm:num_requests_waiting 0\n", "");
    let seen = scraped("vllm", &without_queue, 2);
    assert_eq!(
        seen.figures.delay_of_now().map(|delay| delay.as_secs()),
        Some(20)
    );
    let ones_own = "vllm, queuing_delay: 'vllm:request_queue_time_seconds'";
    let seen = scraped(ones_own, &of(8), 3);
    assert_eq!(
        seen.figures.delay_of_now().map(|delay| delay.as_secs()),
        Some(20)
    );
}

/// Its gauges come with the first step, the histograms with the first answer.
#[test]
fn trtllm_serve_lacks_what_nobody_has_asked_it_for_yet() {
    let page = by("trtllm", "");
    let lacks = [
        "trtllm_num_requests_running: not on the page",
        "trtllm_num_requests_waiting: not on the page",
        "trtllm_request_queue_time_seconds_sum: not on the page",
        "trtllm_request_queue_time_seconds_count: not on the page",
    ];
    assert_eq!(
        (page.complaints, page.in_progress),
        (lacks.map(String::from).into(), None)
    );
}

const TRITON: &str = "\
# HELP nv_inference_queue_duration_us Cumulative inference queuing duration in microseconds (includes cached requests)
# TYPE nv_inference_queue_duration_us counter
nv_inference_queue_duration_us{model=\"tensorrt_llm\",version=\"1\"} 512
# HELP nv_trt_llm_request_metrics TRT LLM request metrics
# TYPE nv_trt_llm_request_metrics gauge
nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"waiting\",version=\"1\"} 3
nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"context\",version=\"1\"} 1
nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"scheduled\",version=\"1\"} 4
nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"max\",version=\"1\"} 512
nv_trt_llm_request_metrics{model=\"tensorrt_llm\",request_type=\"active\",version=\"1\"} 7
# HELP nv_trt_llm_kv_cache_block_metrics TRT LLM KV cache block metrics
# TYPE nv_trt_llm_kv_cache_block_metrics gauge
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\",model=\"tensorrt_llm\",version=\"1\"} 0.25
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"max\",model=\"tensorrt_llm\",version=\"1\"} 6239
";

#[test]
fn of_triton_the_active_requests_count_and_those_that_wait() {
    let page = by("triton", TRITON);
    assert_eq!(page.complaints, Vec::<String>::new());
    assert_eq!((page.in_progress, page.queued), (Some(7), Some(vec![3])));
    assert_eq!((page.delay, page.reading), (None, None), "it has no such");
}

/// After a last step with one request, which it has answered.
#[test]
fn an_idle_triton_has_none_waiting_though_it_says_fewer() {
    let idle = |waiting: &str| {
        let page = TRITON.replace("\"active\",version=\"1\"} 7", "\"active\",version=\"1\"} 0");
        let waits = "\"waiting\",version=\"1\"}";
        by(
            "triton",
            &page.replace(&format!("{waits} 3"), &format!("{waits} {waiting}")),
        )
    };
    let page = idle("-1");
    assert_eq!(page.complaints, Vec::<String>::new());
    assert_eq!((page.in_progress, page.queued), (Some(0), Some(vec![0])));
    for odd in ["NaN", "-Inf", "-1e300"] {
        assert_eq!(idle(odd).queued, None, "{odd}");
        assert_eq!(idle(odd).complaints.len(), 1, "{odd}");
    }
    // Of other engines that is no count.
    let page = by("vllm", "vllm:num_requests_waiting -1\n");
    assert_eq!(page.queued, None);
}
