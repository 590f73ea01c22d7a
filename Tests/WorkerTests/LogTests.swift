import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing
import Worker

/// A pipe to log into.
private final class LogPipe {
  let reader: Int32
  let writer: Int32

  init() {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    (reader, writer) = (ends[0], ends[1])
    // Processes that other tests start meanwhile would hold the writing end open for as long as they live.
    for end in ends { #expect(fcntl(end, F_SETFD, FD_CLOEXEC) == 0) }
  }

  deinit { close(reader) }

  /// Everything that is in the pipe. All of it was written before, and nothing else comes: a process that was started between the pipe's
  /// making and its marking may hold it open.
  func rest() -> String {
    close(writer)
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      var wanted = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
      guard poll(&wanted, 1, 0) > 0 else { return String(decoding: text, as: UTF8.self) }
      let count = read(reader, &buffer, buffer.count)
      if count <= 0 { return String(decoding: text, as: UTF8.self) }
      text += buffer[..<count]
    }
  }
}

@Suite struct LogTests {
  @Test(arguments: [([], "none"), ([3], "3"), ([9, 0, 2, 1, 5, 4, 3], "0-5,9"), ([7, 7, 1], "1,7")] as [([Int32], String)])
  func partitionsAreNamedByNumberAndRange(_ numbers: [Int32], _ text: String) { #expect(PartitionNames.text(numbers) == text) }

  private func logged(_ format: LogFormat = .text, level: LogLevel = .info, repeats: Int = 20, _ body: (Logger) -> Void) -> [String] {
    let pipe = LogPipe()
    let writer = LogWriter(level: level, format: format, descriptor: pipe.writer, repeats: repeats)
    body(Logger(writer, component: "fan-out"))
    #expect(writer.close(within: .milliseconds(hangMilliseconds)))
    return pipe.rest().split(separator: "\n").map(String.init)
  }

  @Test func textLineHasTimeLevelComponentMessageAndFields() throws {
    let lines = logged { $0.with(["lane": 2]).warning("Redis does not answer", ["error": "timed out", "retryMs": 250, "last": true]) }
    try #require(lines.count == 1)
    #expect(
      lines[0].wholeMatch(
        of:
          #/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING fan-out      Redis does not answer lane=2 error="timed out" retryMs=250 last=true/#
      ) != nil)
  }

  @Test func `what turns a line round or has no width is escaped`() {
    let lines = logged { $0.info("read", ["file": "a\u{202E}b", "name": "c\u{200B}", "tag": "\u{E0041}", "path": "a\\b c"]) }
    #expect(lines.first?.hasSuffix(#" file="a\u{202e}b" name="c\u{200b}" tag="\u{e0041}" path="a\\b c""#) == true, "\(lines)")
  }

  @Test(arguments: ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", ""])
  func aLineAboutARequestNamesTheTraceThatItBelongsTo(_ traceparent: String) throws {
    var header = traceparent
    let lines = logged { logger in
      header.withUTF8 { logger.with(trace: UnsafeRawBufferPointer($0)).warning("it failed", ["offset": 7]) }
    }
    try #require(lines.count == 1)
    let trace = traceparent.isEmpty ? "" : " trace_id=0af7651916cd43dd8448eb211c80319c span_id=b7ad6b7169203331"
    #expect(lines[0].hasSuffix("it failed\(trace) offset=7"))
  }

  @Test func jsonLineIsOneObjectWithTypedFields() throws {
    let lines = logged(.json) {
      $0.error("a \"quoted\"\nmessage", ["count": 3, "ratio": 0.5, "on": false, "text": "a\nb"])
    }
    try #require(lines.count == 1)
    let object = try #require(JSONSerialization.jsonObject(with: Data(lines[0].utf8)) as? [String: Any])
    #expect(object["level"] as? String == "error")
    #expect(object["component"] as? String == "fan-out")
    #expect(object["message"] as? String == "a \"quoted\"\nmessage")
    #expect(object["count"] as? Int == 3)
    #expect(object["ratio"] as? Double == 0.5)
    #expect(object["on"] as? Bool == false)
    #expect(object["text"] as? String == "a\nb")
  }

  @Test func fieldCannotEndTheLineNorCommandTheTerminal() {
    let lines = logged { $0.info("hello", ["name": "a\nb\u{1B}[31m\"\u{9B}"]) }
    #expect(lines.count == 1)
    #expect(lines.first?.hasSuffix(#"name="a\nb\u{1b}[31m\"\u{9b}""#) == true)
    // With a combining mark behind it a quote is another Character, and still ends a field.
    let marked = logged { $0.info("hello", ["name": "a\"\u{301} level=error \\\u{301}"]) }
    #expect(marked.first?.hasSuffix("name=\"a\\\"\u{301} level=error \\\\\u{301}\"") == true, "\(marked)")
    let objects = logged(.json) { $0.info("hello", ["name": "a\nb\u{1B}[31m\u{7F}\u{9B}"]) }
    #expect(objects.count == 1)
    #expect(objects.first?.hasSuffix(#""name":"a\nb\u001b[31m\u007f\u009b"}"#) == true, "\(objects)")
  }

  @Test func nothingOfALineBelowTheLevelIsComputed() {
    let computed = Atomic<Int>(0)
    let lines = logged { logger in
      logger.debug("never", ["value": computed.wrappingAdd(1, ordering: .relaxed).newValue])
      logger.info("once", ["value": computed.wrappingAdd(1, ordering: .relaxed).newValue])
    }
    #expect(computed.load(ordering: .relaxed) == 1)
    #expect(lines.count == 1)
  }

  @Test func repeatedMessageIsWrittenAFewTimesAndThenCounted() async throws {
    // All of them are within one interval, unless the machine stands still between two.
    await eventually("three are shown, and the others counted") {
      let pipe = LogPipe()
      let writer = LogWriter(descriptor: pipe.writer, repeats: 3, interval: .seconds(1))
      let logger = Logger(writer, component: "redis")
      for number in 0..<50 { logger.warning("down", ["number": number]) }
      logger.warning("another", [:])
      logger.with(component: "kafka").warning("down", [:])
      var text = ""
      var buffer = [UInt8](repeating: 0, count: 65_536)
      // The writer says what it kept back after the interval, at the latest a second later.
      while !text.contains("notShown") {
        var waiting = pollfd(fd: pipe.reader, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, Int32(hangMilliseconds)) > 0 else { return false }
        text += String(decoding: buffer[..<read(pipe.reader, &buffer, buffer.count)], as: UTF8.self)
      }
      #expect(writer.close(within: .milliseconds(hangMilliseconds)))
      text += pipe.rest()
      let lines = text.split(separator: "\n").map(String.init)
      #expect(lines.filter { $0.contains("another") }.count == 1)
      #expect(lines.filter { $0.contains("kafka ") }.count == 1)
      return lines.filter { $0.contains("number=") }.count == 3
        && lines.contains { $0.contains("redis        down notShown=47 withinMs=") }
    }
  }

  @Test func readerThatStandsStillCostsLinesAndNeverTheCaller() throws {
    let pipe = LogPipe()
    let writer = LogWriter(descriptor: pipe.writer, bound: 100, repeats: .max)
    let logger = Logger(writer, component: "lane")
    let sent = 20_000
    // Far more than a pipe holds, and nobody reads it.
    for number in 0..<sent { logger.info("a line", ["number": number, "padding": "0123456789012345678901234567890123456789"]) }
    #expect(writer.dropped > 0)

    let output = Mutex("")
    let read = DispatchSemaphore(value: 0)
    let reader = Thread { [descriptor = pipe.reader] in
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while !output.withLock({ $0.contains("log lines dropped") }) {
        let count = Glibc.read(descriptor, &buffer, buffer.count)
        if count <= 0 { break }
        output.withLock { $0 += String(decoding: buffer[..<count], as: UTF8.self) }
      }
      read.signal()
    }
    reader.start()
    #expect(read.wait(timeout: .now() + .milliseconds(hangMilliseconds)) == .success)
    #expect(writer.close(within: .milliseconds(hangMilliseconds)))
    let text = output.withLock { $0 } + pipe.rest()
    let reported = text.matches(of: #/log lines dropped.* lines=(\d+)/#).compactMap { Int($0.1) }.reduce(0, +)
    #expect(reported == writer.dropped)
    #expect(text.matches(of: #/a line/#).count + writer.dropped == sent)
  }

  @Test func linesOfSeveralThreadsAreAllWrittenWhole() async {
    let pipe = LogPipe()
    let writer = LogWriter(descriptor: pipe.writer, bound: 10_000, repeats: .max)
    let logger = Logger(writer, component: "x")
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<4 { group.addTask { for number in 0..<100 { logger.info("line", ["id": task * 100 + number]) } } }
    }
    #expect(writer.close(within: .milliseconds(hangMilliseconds)))
    let ids = pipe.rest().split(separator: "\n").compactMap { $0.firstMatch(of: #/ x            line id=(\d+)$/#).flatMap { Int($0.1) } }
    #expect(Set(ids) == Set(0..<400))
    #expect(ids.count == 400)
  }

  @Test func silentLoggerIsOff() {
    #expect(!Logger.silent.isOn(.error))
    Logger.silent.error("nothing")
  }
}
