import EventLoop
import Store
import Worker

/// What all parts of a lane use.
struct LaneContext {
  let loop: EventLoop
  let settings: TransformSettings
  let state: LaneState
  let shards: Shards
  let notes: EndNotes
  let health: Health
  let logger: Logger
  let metrics: TransformMetrics
}
