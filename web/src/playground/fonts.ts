/** Fonts as requests name them: family, weight and style in one text. */

export const WEIGHTS = [
  "Thin", "Extra-Light", "Light", "Regular", "Medium", "Semi-Bold", "Bold", "Extra-Bold", "Black",
] as const;
const USUAL_WEIGHT = "Regular";
const SLANTED = /^(italic|oblique)$/i;

/** A font in parts. The weight may be a number, too. */
export interface Font {
  family: string;
  weight: string;
  italic: boolean;
}

/** Returns the parts of a font. The longest known family counts; without one, all words are the family. */
export function parsedFont(text: string, families: readonly string[]): Font {
  const words = text.split(/\s+/).filter(Boolean);
  for (let count = words.length; count > 0; count -= 1) {
    const named = words.slice(0, count).join(" ").toLowerCase();
    const family = families.find((name) => name.toLowerCase() === named);
    if (family === undefined) continue;
    const styles = words.slice(count);
    const weight = styles.filter((word) => !SLANTED.test(word)).join(" ");
    return { family, weight: knownWeight(weight), italic: styles.some((word) => SLANTED.test(word)) };
  }
  return { family: words.join(" "), weight: USUAL_WEIGHT, italic: false };
}

/** Returns a font as requests name it. */
export function fontText({ family, weight, italic }: Font): string {
  return [family, ...(weight === USUAL_WEIGHT ? [] : [weight]), ...(italic ? ["Italic"] : [])].join(" ");
}

function knownWeight(weight: string): string {
  const plain = (word: string) => word.toLowerCase().replace(/[- ]/g, "");
  return WEIGHTS.find((known) => plain(known) === plain(weight)) ?? (weight || USUAL_WEIGHT);
}
