import { render } from "preact";
import { Dashboard } from "./dashboard";
import "../style/base.css";
import "../style/dashboard.css";

const root = document.getElementById("app");
if (root) render(<Dashboard />, root);
