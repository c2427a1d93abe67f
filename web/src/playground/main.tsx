import { render } from "preact";
import { App } from "./app";
import "../shared/base.css";
import "./style/controls.css";
import "./style/stage.css";
import "./style/results.css";

const root = document.getElementById("app");
if (root) render(<App />, root);
