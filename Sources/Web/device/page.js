import { VERSION } from "../carillon.js";

const config = await (await fetch("config.json")).json();
const state = document.getElementById("state");
if (state) {
  state.textContent = `carillon.js ${VERSION}; devices connect to ${config.devices}`;
}
