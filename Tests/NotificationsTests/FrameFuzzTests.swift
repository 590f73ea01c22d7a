import JSON
import TestSupport
import Testing

@testable import Notifications

/// Frames of `carillon.v1` in both directions, under random input.
@Suite struct FrameFuzzTests {
  static let tokens =
    DeviceFrameType.allCases.map { "\"type\":\"\($0.rawValue)\"" } + ServerFrameType.allCases.map { "\"type\":\"\($0.rawValue)\"" }
    + [
      "{", "}", "[", "]", ",", ":", "\"", "null", "true", "\"device\":", "\"application\":", "\"user\":", "\"authorization\":{\"status\":",
      "\"categories\":[{\"identifier\":\"a\"}]", "\"deliveries\":[", "\"dropped\":[{\"delivery\":1,\"reason\":\"stale\"}]",
      "\"updated\":[1]", "\"response\":\"r\"", "\"receipt\":", "\"request\":\"q\"", "\"userText\":", "\"at\":",
      "\"options\":[\"foreground\"]",
      "\"payload\":{", "\"delivery\":", "\"revision\":", "\"limits\":{", "\"reconnectAfterMs\":",
    ]

  private static func corpus() throws -> [[UInt8]] { try FrameTests.written().map { Array($0.text.utf8) } }

  @Test func aDeviceFrameIsReadAsItIsWrittenOrItsRuleIsNamed() throws {
    let failures = Fuzz("device frames", corpus: try Self.corpus(), tokens: Self.tokens).run { bytes, _ in
      do throws(DeviceFrameError) {
        let frame = try DeviceFrame(bytes)
        guard let text = Self.text(of: frame) else { return nil }
        let again = try withText(text) { bytes throws(DeviceFrameError) in Self.facts(of: try DeviceFrame(bytes)) }
        let first = Self.facts(of: frame)
        return again == first ? nil : "it is not read as it was written: \(first), then \(again)"
      } catch {
        if error.rule.isEmpty { return "the error names no rule" }
        var refusal = JSONWriter()
        if let subject = error.subject {
          ServerFrames.refused(subject, reason: .badFrame, field: error.field, rule: error.rule, to: &refusal)
          do { _ = try withText(refusal.text) { bytes throws(DeviceFrameError) in try ServerFrame(bytes) } } catch {
            return "a device cannot read the refusal \(refusal.text): \(error)"
          }
        }
        return nil
      }
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  /// A frame as its writer writes it; nil where there is nothing to write.
  private static func text(of frame: DeviceFrame) -> String? {
    switch frame {
    case .hello(let frame): JSONWriter.text { frame.write(to: &$0) }
    case .ack(let frame):
      JSONWriter.text { writer in
        let (deliveries, updated, dropped) = numbers(frame)
        AckFrame.write(deliveries: deliveries, updated: updated, dropped: dropped, to: &writer)
      }
    case .response(let frame): JSONWriter.text { frame.write(to: &$0) }
    case .settings(let frame): JSONWriter.text { frame.write(to: &$0) }
    case .categories(let frame): JSONWriter.text { frame.write(to: &$0) }
    case .unregister(let frame): JSONWriter.text { frame.write(to: &$0) }
    case .link(let frame): JSONWriter.text { frame.write(to: &$0) }
    case .unknown: nil
    }
  }

  private static func numbers(_ frame: AckFrame) -> ([UInt64], [UInt64], [(delivery: UInt64, reason: DropReason)]) {
    var (deliveries, updated): ([UInt64], [UInt64]) = ([], [])
    var dropped: [(delivery: UInt64, reason: DropReason)] = []
    frame.forEachDelivery { deliveries.append($0) }
    frame.forEachUpdated { updated.append($0) }
    frame.forEachDropped { dropped.append(($0, $1)) }
    return (deliveries, updated, dropped)
  }

  /// Something of a frame that can be compared.
  private static func facts(of frame: DeviceFrame) -> String {
    switch frame {
    case .ack(let frame): "\(numbers(frame))"
    case .hello(let frame): "\(frame.device.text) \(facts(frame))"
    case .response(let frame): "\(frame)"
    case .settings(let frame): "\(frame.request ?? "-") \(sorted(frame.authorization)) \(frame.locale ?? "-") \(frame.timeZone ?? "-")"
    case .categories(let frame): "\(frame.request ?? "-") \(frame.categories.map(sorted))"
    case .unregister(let frame): "\(frame)"
    case .link(let frame): "\(frame)"
    case .unknown: "unknown"
    }
  }

  private static func facts(_ hello: Hello) -> String {
    "\(hello.application) \(hello.credential ?? "-") \(hello.user ?? "-") \(hello.platform ?? "-") \(String(describing: hello.environment)) "
      + "\(hello.locale ?? "-") \(hello.timeZone ?? "-") \(sorted(hello.authorization)) \(hello.categories?.map(sorted) ?? [])"
  }

  // Sets and dictionaries are described in any order, so what holds them is compared as its writer writes it.
  private static func sorted(_ authorization: Authorization?) -> String {
    authorization.map { value in JSONWriter.text { value.write(to: &$0) } } ?? "-"
  }
  private static func sorted(_ category: NotificationCategory) -> String { JSONWriter.text { category.write(to: &$0) } }

  @Test func aServerFrameIsReadOrItsRuleIsNamed() throws {
    let failures = Fuzz("server frames", corpus: try Self.corpus(), tokens: Self.tokens).run { bytes, _ in
      do throws(DeviceFrameError) {
        let frame = try ServerFrame(bytes)
        if case .notify(let notify) = frame {
          guard (try? JSONValue(parsing: String(decoding: notify.payload, as: UTF8.self))) != nil else { return "its payload is no JSON" }
          if let trigger = notify.trigger, (try? JSONValue(parsing: trigger)) == nil { return "its trigger is no JSON" }
        }
        let again = try ServerFrame(bytes)
        return again == frame ? nil : "read twice it is not the same"
      } catch {
        return error.rule.isEmpty ? "the error names no rule" : nil
      }
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
