import { render } from "preact";
import { Dashboard } from "./dashboard";
import "../shared/base.css";
import "./dashboard.css";

const root = document.getElementById("app");
if (root) render(<Dashboard />, root);
