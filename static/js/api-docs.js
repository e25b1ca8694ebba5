/* The page that describes the API: Swagger UI, as whoever is logged in here. */

"use strict";

const place = document.getElementById("api-docs");
const settings = JSON.parse(document.getElementById("api-docs-settings").textContent);

window.SwaggerUIBundle({
  ...settings,
  domNode: place,
  presets: [window.SwaggerUIBundle.presets.apis],
  requestInterceptor: (request) => {
    request.headers["X-CSRFToken"] = place.dataset.csrfToken;
    return request;
  },
});
