import Foundation
import TestSupport
import Testing

@testable import Command

/// Where a running `carillon up` leaves its file: never in a folder of somebody else, and somewhere in spite of one.
@Suite struct RuntimeFolderTests {
  /// What somebody else may have made in the place first, by name.
  static let foreign = ["a file", "a link", "open to others", "of another user"]

  /// Makes it; false where this user cannot.
  private static func make(_ kind: String, at path: String, in folder: TestFolder) throws -> Bool {
    switch kind {
    case "a file": try folder.write(String(path.dropFirst(folder.path.count + 1)), "")
    case "a link":
      try FileManager.default.createDirectory(atPath: folder.path + "/elsewhere", withIntermediateDirectories: true)
      chmod(folder.path + "/elsewhere", 0o700)
      symlink(folder.path + "/elsewhere", path)
    case "of another user":
      mkdir(path, 0o700)
      return chown(path, 65_534, 65_534) == 0
    default:
      mkdir(path, 0o700)
      chmod(path, 0o755)
    }
    return true
  }

  @Test(arguments: foreign) func `a place that somebody else has taken is passed over, for up and for the tools`(_ kind: String) throws {
    try TestFolder.with { folder in
      let places = [folder.path + "/first", folder.path + "/second"]
      guard try Self.make(kind, at: places[0], in: folder) else { return }
      #expect(try RuntimeFolder.open(in: places, creating: false) == nil)
      #expect(try RuntimeFolder.open(in: places, creating: true)?.path == places[1])
      #expect(try RuntimeFolder.open(in: places, creating: false)?.path == places[1])
      let error = #expect(throws: Failure.self) { try RuntimeFolder.open(in: [places[0]], creating: true) }
      #expect(error?.description.contains("\(places[0]) is not a folder of your own with mode 0700") == true)
      // The place becomes free again, and the cluster still runs.
      rename(places[0], folder.path + "/away")
      #expect(try RuntimeFolder.open(in: places, creating: false)?.path == places[1])
      #expect(try RuntimeFolder.open(in: places, creating: true)?.path == places[1])
    }
  }

  @Test func `a missing folder is made private, whatever the umask is`() throws {
    try TestFolder.with { folder in
      let place = folder.path + "/made"
      #expect(try RuntimeFolder.open(in: [place], creating: false) == nil)
      let made = try #require(try RuntimeFolder.open(in: [place], creating: true))
      var facts = stat()
      #expect(stat(made.path, &facts) == 0 && facts.st_mode & 0o777 == 0o700)
    }
  }

  @Test(arguments: ["a link", "written by others", "of another user", "a FIFO"])
  func `a file that somebody else may have written is not read`(_ kind: String) throws {
    try TestFolder.with { folder in
      let place = try #require(try RuntimeFolder.open(in: [folder.path + "/made"], creating: true))
      try folder.write("made/up.json", "{}")
      chmod(place.path + "/up.json", 0o600)
      #expect(place.contents(of: "up.json", limit: 100) == Array("{}".utf8))
      #expect(place.contents(of: "up.json", limit: 1) == nil)
      #expect(place.contents(of: "none", limit: 100) == nil)
      switch kind {
      case "a link":
        rename(place.path + "/up.json", place.path + "/other")
        symlink("other", place.path + "/up.json")
      case "of another user": guard chown(place.path + "/up.json", 65_534, 65_534) == 0 else { return }
      case "a FIFO":
        unlink(place.path + "/up.json")
        mkfifo(place.path + "/up.json", 0o600)
      default: chmod(place.path + "/up.json", 0o622)
      }
      #expect(place.contents(of: "up.json", limit: 100) == nil)
    }
  }

  @Test func `a place counts only where this user can write, and XDG_RUNTIME_DIR only where it is this user's`() throws {
    try TestFolder.with { folder in
      let id = getuid()
      for name in ["run", "tmp", "home"] { mkdir("\(folder.path)/\(name)", 0o700) }
      let variables = ["XDG_RUNTIME_DIR": "\(folder.path)/run", "TMPDIR": "\(folder.path)/tmp", "HOME": "\(folder.path)/home"]
      func places(_ changes: [String: String] = [:]) -> [String] {
        let all = variables.merging(changes) { $1 }
        return RuntimeFolder.places { all[$0] }.map { $0.replacing(folder.path, with: "") }
      }
      #expect(places() == ["/run/carillon", "/tmp/carillon-\(id)", "/home/.carillon"])
      #expect(places(["XDG_RUNTIME_DIR": ""]) == ["/tmp/carillon-\(id)", "/home/.carillon"])
      #expect(places(["XDG_RUNTIME_DIR": "run", "HOME": "/no/where"]) == ["/tmp/carillon-\(id)"])
      #expect(RuntimeFolder.places { _ in nil } == ["/tmp/carillon-\(id)"])
      if chown(folder.path + "/run", 65_534, 65_534) == 0, chown(folder.path + "/home", 65_534, 65_534) == 0 {
        #expect(places() == ["/tmp/carillon-\(id)"])
      }
    }
  }
}
