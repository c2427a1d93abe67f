import { render } from "preact";
import { Dashboard } from "./dashboard";
import { keys, takeLocalKey } from "../shared/service";
import "../shared/base.css";
import "./dashboard.css";

const root = document.getElementById("app");
if (!keys.get()) await takeLocalKey();
if (root) render(<Dashboard />, root);
