import EventLoop
import Glibc
import HTTP
import TestSupport

/// What became of all sources of a fixture.
final class SourceLog {
  struct Counts: Sendable {
    /// How often each source was closed, in the order of their making.
    var closings: [Int] = []
    /// Bytes that were read from all of them.
    var bytesRead = 0
    /// Reads of a source that was closed, or beyond its end, or for nothing.
    var wrongReads = 0
    /// Pieces of one source that were in memory at once.
    var mostPieces = 0
    /// Reads of one source that were no turn of the loop apart.
    var readsInSameTurn = 0
  }

  var counts = Counts()
}

/// A part of an endless pattern, which knows whether it is read as it should be.
final class PatternSource: HTTPBodySource {
  enum Fault: String {
    case error, empty, long
  }

  private struct Failure: Error {}
  private struct Piece {
    weak var bytes: SharedBytes?
  }

  /// Of a length that is no multiple of anything, so that a piece in the wrong place is seen.
  private static let pattern: [UInt8] = {
    var random = SeededRandom(seed: 7)
    return (0..<65_521).map { _ in UInt8.random(in: 0...255, using: &random) }
  }()

  let count: Int
  private var rest: Range<Int>
  private let fault: (kind: Fault, at: Int)?
  private let loop: EventLoop
  private let log: SourceLog
  private let number: Int
  private var pieces: [Piece] = []
  private var lastTurn: UInt64?

  /// - Parameter fault: what happens instead of the read that comes to a position.
  init(_ range: Range<Int>, fault: (kind: Fault, at: Int)? = nil, on loop: EventLoop, _ log: SourceLog) {
    count = range.count
    rest = range
    self.fault = fault
    self.loop = loop
    self.log = log
    number = log.counts.closings.count
    log.counts.closings.append(0)
  }

  static func bytes(_ range: Range<Int>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(range.count)
    var position = range.lowerBound
    while position < range.upperBound {
      let start = position % pattern.count
      let end = min(pattern.count, start + range.upperBound - position)
      bytes += pattern[start..<end]
      position += end - start
    }
    return bytes
  }

  /// Where bytes are not the pattern that begins at a position; many megabytes are compared at once.
  static func firstDifference(in bytes: [UInt8], from position: Int = 0) -> Int? {
    let expected = Self.bytes(position..<position + bytes.count)
    let areEqual = expected.withUnsafeBytes { expected in
      bytes.withUnsafeBytes { bytes in
        guard let left = expected.baseAddress, let right = bytes.baseAddress else { return true }
        return memcmp(left, right, bytes.count) == 0
      }
    }
    return areEqual ? nil : expected.indices.first { expected[$0] != bytes[$0] }
  }

  func read(atMost maximum: Int) throws -> SharedBytes {
    if log.counts.closings[number] > 0 || maximum <= 0 || maximum > rest.count { log.counts.wrongReads += 1 }
    if lastTurn == loop.turns { log.counts.readsInSameTurn += 1 }
    lastTurn = loop.turns
    var end = min(rest.upperBound, rest.lowerBound + maximum)
    if let fault {
      if rest.lowerBound >= fault.at {
        switch fault.kind {
        case .error: throw Failure()
        case .empty: return .make("")
        case .long: return .make(count: maximum + 1) { $0.initializeMemory(as: UInt8.self, repeating: 0) }
        }
      }
      end = min(end, fault.at)
    }
    let bytes = Self.bytes(rest.lowerBound..<end)
    rest = end..<rest.upperBound
    log.counts.bytesRead += bytes.count
    let piece = bytes.withUnsafeBytes { SharedBytes.make($0) }
    pieces.removeAll { $0.bytes == nil }
    pieces.append(Piece(bytes: piece))
    log.counts.mostPieces = max(log.counts.mostPieces, pieces.count)
    return piece
  }

  func close() { log.counts.closings[number] += 1 }
}
