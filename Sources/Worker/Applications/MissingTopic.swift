/// A missing topic that a lane needs.
struct MissingTopic: Error, CustomStringConvertible {
  let topic: String

  /// The error, and the command that creates the topic.
  var description: String { "there is no topic \(topic): 'carillon topics create' makes it" }
}
