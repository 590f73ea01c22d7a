import Glibc
import Notifications
import TestSupport
import Testing

@testable import Operations

@Suite(.onThreadsOfTheirOwn) struct SpillTests {
  /// Files of audits in a folder.
  private func files(in folder: String) -> Int {
    guard let directory = opendir(folder) else { return -1 }
    defer { closedir(directory) }
    var count = 0
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
      }
      if name.hasPrefix("carillon-audit-") { count += 1 }
    }
    return count
  }

  private func withFolder(_ body: (String) throws -> Void) throws {
    try TestFolder.with { try body($0.path) }
  }

  private func fact(_ number: Int) -> AuditFact {
    var fact = AuditFact(.told(number.isMultiple(of: 2) ? .queued : .delivered))
    fact.id = AuditHistory.id(number)
    fact.device = UInt64(number % 1_000) &* 0x1234_5678_9ABC_DEF1
    fact.offset = Int64(number)
    return fact
  }

  @Test(arguments: [100, 400_000]) func everyFactComesBackOnceInThePartOfItsHash(count: Int) throws {
    try withFolder { folder in
      var spill = Spill<AuditFact>(expecting: Int64(count), in: folder)
      for number in 0..<count { try spill.add(fact(number), hash: fact(number).device) }
      // What is little stays in memory; what is more is in a file that has no name.
      #expect((spill.bytesOnDisk > 0) == (count > 1_000))
      #expect(files(in: folder) == 0)
      var seen: Set<AuditFact> = []
      var parts: [UInt64: Int] = [:]
      for part in 0..<spill.parts {
        for fact in try spill.take(part) {
          #expect(seen.insert(fact).inserted)
          #expect(parts[fact.device, default: part] == part)
          parts[fact.device] = part
        }
        #expect(try spill.take(part).isEmpty)
      }
      #expect(seen == Set((0..<count).map(fact)))
    }
  }

  @Test func aFolderWithoutRoomIsNamed() {
    #expect {
      var spill = Spill<AuditFact>(expecting: 1_000_000, in: "/does-not-exist")
      for number in 0..<1_000_000 { try spill.add(fact(number), hash: 1) }
    } throws: { error in
      let error = error as? SpillError
      return error?.code == ENOENT && error?.description.contains("/does-not-exist") == true
        && error?.description.contains("--spill") == true
    }
  }
}
