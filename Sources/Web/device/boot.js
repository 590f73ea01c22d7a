// While a cluster is upgraded another worker, of another version, may answer for the page's files. Then the page is loaded again.
try {
  await import("./page.js");
} catch {
  setTimeout(() => location.reload(), 2000);
}
