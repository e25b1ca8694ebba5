/** What is heard, as the page shows it before and during a capture: the choice, devices, levels. */

import { Meter } from "./meter.js";
import { hearsMicrophone, hearsShared } from "./source-words.js";

export class SourceChoice {
  /**
   * `root` holds the fields of both views. `on.choose(choice)`, `on.microphone(deviceId)` and
   * `on.share()` are called with what the person did. `obstacle`: why nothing can be shared, or "".
   */
  constructor(root, obstacle, on) {
    this.root = root;
    this.selects = [...root.querySelectorAll(".source-select")];
    this.devices = [...root.querySelectorAll(".device-select")];
    this.meters = [...root.querySelectorAll(".level")].map((level) => ({
      source: level.dataset.source,
      meter: new Meter(level.querySelector(".meter")),
    }));
    for (const select of this.selects) {
      for (const option of select.options) {
        option.disabled = obstacle !== "" && hearsShared(option.value);
      }
      select.addEventListener("change", () => on.choose(select.value));
    }
    for (const select of this.devices) {
      select.addEventListener("change", () => on.microphone(select.value));
    }
    for (const button of root.querySelectorAll(".source-share")) {
      button.addEventListener("click", () => on.share());
    }
    for (const words of root.querySelectorAll(".source-obstacle")) {
      words.textContent = obstacle;
      words.hidden = obstacle === "";
    }
  }

  /** `choice` is what stands in the selects, in force or wished. */
  show(choice) {
    this.root.dataset.source = choice;
    for (const select of this.selects) select.value = choice;
    for (const field of this.root.querySelectorAll(".needs-microphone")) {
      field.hidden = !hearsMicrophone(choice);
    }
    for (const field of this.root.querySelectorAll(".needs-share")) {
      field.hidden = !hearsShared(choice);
    }
  }

  /** `devices` as `microphones` gives them; `chosen` is the id of one of them. */
  showDevices(devices, chosen) {
    for (const select of this.devices) {
      const options = devices.map(({ id, name }) => new Option(name, id, false, id === chosen));
      select.replaceChildren(...(options.length > 0 ? options : [new Option("The browser's choice", "")]));
    }
  }

  /** `levels` as the `level` event of Sources. */
  showLevels(levels) {
    for (const { source, meter } of this.meters) meter.show(levels[source]);
  }

  clearLevels() {
    for (const { meter } of this.meters) meter.clear();
  }
}
