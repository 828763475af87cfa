/** What is in a PDF that was written without compression: its pages, the text that is drawn on them, and how. */

export interface ReadPage {
  /** Lines of text as they are drawn, in their order. */
  readonly text: readonly string[];
  /** The drawing operators. */
  readonly content: string;
}

/** Glyph → letters of each font, by the object that holds it: `beginbfrange <0000> <00ff> [<0041> …]`. */
const lettersOf = (map: string): ReadonlyMap<string, string> => {
  const found = new Map<string, string>();
  const decoded = (hex: string): string => Buffer.from(hex, 'hex').swap16().toString('utf16le');
  for (const [, first = '', list = ''] of map.matchAll(/<([0-9a-f]+)> <[0-9a-f]+> \[([^\]]*)\]/gi)) {
    const hexes = [...list.matchAll(/<([0-9a-f ]+)>/gi)];
    for (const [at, [, hex = '']] of hexes.entries()) {
      const glyph = (Number.parseInt(first, 16) + at).toString(16).padStart(4, '0');
      found.set(glyph, decoded(hex.replaceAll(' ', '')));
    }
  }
  return found;
};

export const readPdf = (bytes: Buffer): { readonly pages: readonly ReadPage[]; readonly raw: string } => {
  const raw = bytes.toString('latin1');
  const objects = new Map<string, string>();
  for (const [, id = '', body = ''] of raw.matchAll(/\n(\d+) 0 obj\n([\s\S]*?)\nendobj/g)) objects.set(id, body);
  const at = (ref: string | undefined): string => objects.get(ref ?? '') ?? '';
  const streamOf = (body: string): string => /stream\n([\s\S]*?)\nendstream/.exec(body)?.[1] ?? '';
  const ref = (body: string, name: string): string | undefined => new RegExp(`/${name} (\\d+) 0 R`).exec(body)?.[1];
  const pages = [...objects.values()].filter((body) => /\/Type \/Page\b/.test(body));
  return {
    raw,
    pages: pages.map((page) => {
      const content = streamOf(at(ref(page, 'Contents')));
      const resources = at(ref(page, 'Resources'));
      const fonts = new Map(
        [...resources.matchAll(/\/(F\d+) (\d+) 0 R/g)].map(([, name = '', id]) => [
          name,
          lettersOf(streamOf(at(ref(at(id), 'ToUnicode')))),
        ]),
      );
      const text: string[] = [];
      let font = new Map() as ReadonlyMap<string, string>;
      for (const [, name, shown] of content.matchAll(/\/(F\d+) [\d.]+ Tf|\[([^\]]*)\] TJ/g)) {
        if (name !== undefined) font = fonts.get(name) ?? font;
        else {
          const glyphs = [...(shown ?? '').matchAll(/<([0-9a-f]+)>/gi)].flatMap(
            ([, hex = '']) => hex.match(/.{4}/g) ?? [],
          );
          text.push(glyphs.map((glyph) => font.get(glyph) ?? '?').join(''));
        }
      }
      return { text, content };
    }),
  };
};
