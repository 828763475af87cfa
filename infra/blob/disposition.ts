/** How a browser treats a file: inline only types that it renders without running code. */

const inline: ReadonlySet<string> = new Set([
  'image/jpeg',
  'image/png',
  'image/webp',
  'image/avif',
  'image/gif',
  'video/mp4',
  'video/webm',
  'video/quicktime',
  'application/pdf',
]);

const percent = (character: string): string =>
  [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');

/** A loop, because `/[. ]+$/` would start again at every dot and take quadratic time. */
const withoutOuterDots = (text: string): string => {
  const outer = (at: number): boolean => text[at] === '.' || text[at] === ' ';
  let from = 0;
  let to = text.length;
  while (from < to && outer(from)) from += 1;
  while (to > from && outer(to - 1)) to -= 1;
  return text.slice(from, to);
};

/** RFC 6266: a plain name for every client, and the exact one (RFC 8187) where the plain one lost characters. */
const fileNames = (given: string): string => {
  // No folder, no control or direction character, nothing that ends a header: the rest is a name on every system.
  const name = withoutOuterDots(given.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}/\\:*?"<>|]/gu, '_'))
    .slice(0, 200)
    .toWellFormed();
  if (name === '') return '';
  const plain = name.replace(/[^\x20-\x7e]/gu, '_').replaceAll('%', '_');
  const extended = name.replace(/[^A-Za-z0-9!#$&+.^_`|~-]/gu, percent);
  return plain === name ? `; filename="${plain}"` : `; filename="${plain}"; filename*=UTF-8''${extended}`;
};

export const disposition = (contentType: string, fileName: string | null): string => {
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
  return `${inline.has(type) ? 'inline' : 'attachment'}${fileName === null ? '' : fileNames(fileName)}`;
};
