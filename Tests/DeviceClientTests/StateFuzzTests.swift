import JSON
import Notifications
import TestSupport
import Testing

@testable import DeviceClient

/// The state file of a device, under random input: what a crash or another program leaves of it.
@Suite struct StateFuzzTests {
  private static let notify =
    #"{"type":"notify","delivery":7,"id":"123e4567-e89b-12d3-a456-42665544000a","identifier":"score","revision":"0000018bcfe568000000000300000000000000ff","expiration":0,"priority":10,"pushType":"alert","payload":{"aps":{"alert":"x"}},"receipt":"r"}"#
  private static let lines = [
    #"{"device":"aa","application":"a.b"}"#, #"{"took":\#(notify),"at":5}"#, #"{"noted":"a","revision":"b","at":5}"#,
    #"{"removed":["a","b"],"revision":"c","at":5}"#, #"{"cleared":["a"]}"#, #"{"fired":"a","at":5}"#,
    #"{"response":{"type":"response","response":"r","receipt":"x","identifier":"i","action":"a","at":5}}"#, #"{"settled":"r"}"#,
    #"{"id":"x","at":5}"#, #"{"delivered":\#(notify),"at":5}"#, #"{"pending":\#(notify),"at":5}"#, #"{"later":1}"#,
    // Once: a notification without a receipt was written so that it was not read again.
    #"{"took":\#(notify.replacing(#","receipt":"r""#, with: "")),"at":5}"#,
  ]
  private static let tokens = ["\n", "{", "}", "\"at\":", "\"took\":", "\"device\":", "null", "[", "]", ",", "\"payload\":{}"]

  @Test func aLineThatIsReadIsWrittenSoThatItIsReadAlike() {
    let failures = Fuzz("state records", corpus: Self.lines.map { Array($0.utf8) }, tokens: Self.tokens).run { bytes, _ in
      guard let value = try? JSONValue(parsing: bytes), let record = StateRecord(value) else { return nil }
      var written: [UInt8] = []
      StateLines.append(record, to: &written)
      let again = StateLines.read(written)
      guard again.records == [record], again.damaged == 0, again.whole == written.count else { return "\(record) is read as \(again)" }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test func aDamagedFileGivesOnlyWholeRecords() {
    var file: [UInt8] = []
    var records: [StateRecord] = []
    for line in Self.lines {
      guard let value = try? JSONValue(parsing: line), let record = StateRecord(value) else { continue }
      StateLines.append(record, to: &file)
      records.append(record)
    }
    let failures = Fuzz("state files", corpus: [file], tokens: Self.tokens, inputs: 2_000).run { bytes, _ in
      let read = StateLines.read(Array(bytes))
      if read.whole > bytes.count { return "more is whole than there is" }
      for record in read.records where !records.contains(record) { return "a record that nobody wrote: \(record)" }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
