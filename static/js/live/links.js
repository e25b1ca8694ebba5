/** The page of a session's addresses: each has a button that copies it. */

for (const button of document.querySelectorAll("[data-copies]")) {
  const field = button.parentElement.querySelector("input");
  button.hidden = false;
  button.addEventListener("click", async () => {
    field.select(); // also for a browser that lets no script copy: then the keys do
    try {
      await navigator.clipboard.writeText(field.value);
      button.title = "Copied";
    } catch {
      button.title = "Not allowed: copy it with the keyboard";
    }
    button.querySelector(".only-heard").textContent = button.title;
    button.dataset.done = button.title === "Copied" ? "yes" : "no";
  });
}
