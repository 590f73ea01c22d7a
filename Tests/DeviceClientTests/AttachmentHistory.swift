import Foundation
import Notifications
import TestSupport

/// A random history of notifications with few contents, and the naive model of what is listed after it.
///
/// The steps of a round run at the same time. They are of different notifications.
struct AttachmentHistory {
  enum Step {
    /// Adds or updates a notification, with this content or without an attachment.
    case add(Int, Int?)
    case remove(Int)
    case open(Int)
  }

  static let identifiers: [Name] = ["n0", "n1", "n2", "n3"]
  static let contents = ["a", "b", "c"].map { "GIF89a" + String(repeating: $0, count: 500) }

  let rounds: [[Step]]

  init(seed: UInt64, rounds count: Int) {
    var random = SeededRandom(seed: seed)
    rounds = (0..<count).map { _ in
      Self.identifiers.indices.shuffled(using: &random).prefix(3).map { identifier in
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5: .add(identifier, Int.random(in: 0..<Self.contents.count, using: &random))
        case 5: .add(identifier, nil)
        case 6..<9: .remove(identifier)
        default: .open(identifier)
        }
      }
    }
  }

  /// The content of each listed notification after so many rounds.
  func listed(after count: Int) -> [Name: String?] {
    var listed: [Name: String?] = [:]
    for step in rounds.prefix(max(count, 0)).joined() {
      switch step {
      case .add(let identifier, let content): listed[Self.identifiers[identifier]] = .some(content.map { Self.contents[$0] })
      case .remove(let identifier): listed[Self.identifiers[identifier]] = nil
      case .open: break
      }
    }
    return listed
  }

  /// Writes the program's files, and the history as `KilledDevice` reads it.
  func write(beside path: String) throws {
    var text = ""
    for (round, steps) in rounds.enumerated() {
      for step in steps {
        switch step {
        case .add(let identifier, let content):
          let source = content.map { _ in Self.source(round, identifier, path) }
          if let content, let source { try Self.contents[content].write(toFile: source, atomically: false, encoding: .utf8) }
          text += "add \(Self.identifiers[identifier]) \(source ?? "-")\n"
        case .remove(let identifier): text += "remove \(Self.identifiers[identifier]) -\n"
        case .open(let identifier): text += "open \(Self.identifiers[identifier]) -\n"
        }
      }
      text += "\n"
    }
    try text.write(toFile: path + "-history", atomically: false, encoding: .utf8)
  }

  /// The program's file that a notification gets in a round; nil without one.
  func source(of identifier: Name, round: Int, beside path: String) -> String? {
    guard rounds.indices.contains(round) else { return nil }
    for case .add(let number, _?) in rounds[round] where Self.identifiers[number] == identifier { return Self.source(round, number, path) }
    return nil
  }

  static func source(_ round: Int, _ identifier: Int, _ path: String) -> String { "\(path)-photo-\(round)-\(identifier)" }
}
