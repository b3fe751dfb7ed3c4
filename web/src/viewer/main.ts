// The viewer: starts it over the server's answers, or over what an exported page holds.

import "../parts/controls.css";
import "./viewer.css";
import "./panels.css";
import "./screens.css";

import { language } from "../parts/language";
import { App } from "./app";
import { startColours } from "./shell/colours";
import { EmbeddedSource, embeddedIn } from "./sources/embedded";
import { HttpSource } from "./sources/http";

declare global {
  interface Window {
    // For tests and the curious: what is shown, as objects.
    msprobe?: App;
  }
}

document.documentElement.lang = language();
startColours();
const embedded = embeddedIn(document);
const app: App = new App(embedded ? new EmbeddedSource(embedded) : new HttpSource((share) => app.preparing(share)));
window.msprobe = app;
void app.start();
