/// A topic that a lane needs is not there.
struct MissingTopic: Error, CustomStringConvertible {
  let topic: String

  /// What to do.
  var description: String { "there is no topic \(topic): 'carillon topics create' makes it" }
}
