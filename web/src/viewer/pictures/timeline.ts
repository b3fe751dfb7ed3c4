// The timeline draws itself with the styles of the page. To be kept, its parts get the styles they have here.

import { button } from "../../parts/dom";
import { colours } from "../shell/colours";
import { handOutPng, handOutSvg } from "../shell/files";
import { VIEWER_WORDS } from "../words";

const STYLES = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "font-size",
  "font-weight",
  "text-anchor",
];

function styled(from: Element): Element {
  const copy = from.cloneNode(false) as Element;
  if (from instanceof SVGElement) {
    const has = getComputedStyle(from);
    for (const name of STYLES) copy.setAttribute(name, has.getPropertyValue(name));
    copy.removeAttribute("class");
  }
  for (const child of Array.from(from.childNodes))
    copy.append(child instanceof Element ? styled(child) : child.cloneNode());
  return copy;
}

function whole(body: HTMLElement): { svg: string; width: number; height: number } | null {
  const pictures = Array.from(body.querySelectorAll<SVGSVGElement>("svg.axis, svg.picture"));
  if (!pictures.length) return null;
  let height = 0;
  let width = 0;
  const parts = pictures.map((picture) => {
    const copy = styled(picture);
    copy.setAttribute("y", String(height));
    height += picture.height.baseVal.value;
    width = Math.max(width, picture.width.baseVal.value);
    return new XMLSerializer().serializeToString(copy);
  });
  const { card } = colours();
  const font = getComputedStyle(document.body).fontFamily.replace(/"/g, "'");
  return {
    width,
    height,
    svg: `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${font}"><rect width="${width}" height="${height}" fill="${card}"/>${parts.join("")}</svg>\n`,
  };
}

async function png(body: HTMLElement): Promise<void> {
  const picture = whole(body);
  if (!picture) return;
  const { svg, width, height } = picture;
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  await image.decode();
  await handOutPng(width, height, (pen) => pen.drawImage(image, 0, 0, width, height), "timeline");
  URL.revokeObjectURL(image.src);
}

export function timelineTools(body: HTMLElement): HTMLElement[] {
  const words = VIEWER_WORDS;
  return [
    button(words.keepPng, words.keepPngHint, () => void png(body), "button keep-png"),
    button(
      words.keepSvg,
      words.keepSvgHint,
      () => {
        const picture = whole(body);
        if (picture) handOutSvg(picture.svg, "timeline");
      },
      "button keep-svg",
    ),
  ];
}
