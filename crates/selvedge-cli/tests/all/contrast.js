// The texts of the page whose contrast with what is behind them is less than 4.5, as WCAG 2.1 computes it.
const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const parse = (color) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
  return [red, green, blue, alpha / 255];
};
const over = (above, below) => [0, 1, 2].map((n) => above[n] * above[3] + below[n] * (1 - above[3]));
const luminance = (color) => {
  const [red, green, blue] = color.map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const found = [];
for (const element of document.querySelectorAll('body *')) {
  const box = element.getBoundingClientRect();
  const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!text || !box.width || !box.height) continue;
  const backgrounds = [];
  let opacity = 1;
  for (let at = element; at; at = at.parentElement) {
    backgrounds.unshift(parse(getComputedStyle(at).backgroundColor));
    opacity *= Number(getComputedStyle(at).opacity);
  }
  const background = backgrounds.reduce((below, above) => over(above, below), [255, 255, 255]);
  const svg = element.namespaceURI.includes('svg');
  const color = parse(svg ? getComputedStyle(element).fill : getComputedStyle(element).color);
  color[3] *= opacity;
  const [light, dark] = [luminance(over(color, background)), luminance(background)].sort((a, b) => b - a);
  const contrast = (light + 0.05) / (dark + 0.05);
  if (contrast < 4.5) found.push(`${element.tagName}.${element.getAttribute('class')}: ${contrast.toFixed(2)}`);
}
return found.join(', ');
