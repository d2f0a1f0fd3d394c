import DefaultTheme from "vitepress/theme";
import "./style.css";

/** The home page of the default theme has no main landmark. */
const markMain = () => {
  const content = document.querySelector("#VPContent");
  if (content?.classList.contains("is-home")) content.setAttribute("role", "main");
  else content?.removeAttribute("role");
};

export default {
  extends: DefaultTheme,
  enhanceApp({ router }) {
    // In a browser only: the pages are rendered without a document.
    if (typeof document !== "undefined") router.onAfterPageLoad = () => setTimeout(markMain);
  },
};
