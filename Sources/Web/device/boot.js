// Loads the page's modules. While a cluster is upgraded, two versions answer: then the reload gets both from one.
import("./center.js").catch(async (error) => {
  const tries = Number(sessionStorage.getItem("boot") ?? 0);
  if (tries >= 2) {
    sessionStorage.removeItem("boot");
    document.body.textContent = "This page cannot be loaded now. Load it again in a minute.";
    throw error;
  }
  sessionStorage.setItem("boot", String(tries + 1));
  await new Promise((resolve) => setTimeout(resolve, 1000 + Math.random() * 2000));
  location.reload();
});
