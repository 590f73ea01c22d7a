import JSON
import TestSupport
import Testing

/// What `carillon categories` promises to the person who types.
@Suite struct CategoriesTests {
  @Test func `wrong usage is explained and ends with two`() async throws {
    try await TestFolder.with { folder in
      try folder.write("two.json", #"[{"identifier":"a"},{"identifier":"a"}]"#)
      try folder.write("none.json", "{")
      let mistakes: [([String], String)] = [
        (["publish"], "FILE"), (["publish", folder.path + "/two.json"], "--app"),
        (
          ["publish", folder.path + "/two.json", "--app", "a.b"],
          "categories[1].identifier: The identifiers of an application's categories differ."
        ),
        (["publish", folder.path + "/none.json", "--app", "a.b"], "it is no JSON"),
        (["publish", folder.path + "/none.json", "--app", "a b"], "is not an application"),
      ]
      try await CarillonCommand.with { carillon in
        for (arguments, text) in mistakes {
          let result = try await carillon.run(["categories"] + arguments + ["--kafka", "127.0.0.1:9"])
          #expect(result.status == 2 && result.output.isEmpty && result.errors.contains(text), "\(arguments) said: \(result.errors)")
        }
      }
    }
  }

  @Test func `categories are published, listed and taken back`() async throws {
    try await TestFolder.with { folder in
      try folder.write(
        "categories.json",
        #"[{"identifier":"chat","actions":[{"identifier":"reply","title":"Reply","textInput":{}},{"identifier":"mute","title":"Mute"}]},{"identifier":"plain"}]"#
      )
      try folder.write("none.json", "[]")
      try await CarillonCommand.with { carillon in
        let up = try carillon.start(CarillonCommand.up)
        let kafka = try #require(try JSONValue(parsing: try await up.firstLine())["kafka"]?.stringValue)
        func run(_ words: String...) async throws -> CarillonCommand.Result {
          try await carillon.run(["categories"] + words + ["--kafka", kafka])
        }
        #expect(try await run("list").status == 1)
        try folder.write(
          "typed.json",
          #"[{"identifier":"a","options":["customDismisAction","allowInCarPlay"],"colour":1,"intentIdentifiers":[],"actions":[{"identifier":"x","title":"t","title":"u","options":["foreground","loud"]}]}]"#
        )
        let typed = try await run("publish", folder.path + "/typed.json", "--app", "com.example", "--dry-run")
        #expect(typed.status == 0 && typed.errors.split(separator: "\n").count == 4, "it said: \(typed.errors)")
        for part in [#"[0].options: "customDismisAction""#, "[0].colour", "[0].actions[0].title", #"[0].actions[0].options: "loud""#] {
          #expect(typed.errors.contains("categories\(part) is not known here"), "it said: \(typed.errors)")
        }
        let dry = try await run("publish", folder.path + "/categories.json", "--app", "com.example", "--dry-run")
        #expect(dry.status == 0 && dry.output.contains("2 categories would be published; nothing was written"), "it said: \(dry.output)")
        #expect(try await run("list").status == 1, "a dry run writes nothing")
        let published = try await run("publish", folder.path + "/categories.json", "--app", "com.example")
        #expect(published.status == 0 && published.lines == ["com.example  2 categories"], "it said: \(published.output)")
        let listed = try await run("list")
        #expect(listed.lines == ["com.example  chat: reply (takes text), mute", "com.example  plain"], "it said: \(listed.output)")
        let json = try JSONValue(parsing: try await run("list", "--app", "com.example", "--json").output)
        #expect(json["application"] == "com.example" && json["categories"]?[0]?["actions"]?[0]?["identifier"] == "reply")
        #expect(try await run("list", "--app", "another").status == 1)
        #expect(try await run("publish", folder.path + "/none.json", "--app", "com.example").status == 0)
        #expect(try await run("list").status == 1)
        try await up.stop()
      }
    }
  }
}
