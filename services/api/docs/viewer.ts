import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

/**
 * The script of Scalar, the viewer. Its own package has 272 others below it, 287 MB, for this one file. Scalar's plugin
 * for Fastify has 20 and holds the same file as a string literal, so we read the literal and run nothing of the plugin.
 */

const holder = '@scalar/fastify-api-reference';
const opening = 'var standalone_default = ';

/** A literal of JavaScript; beside JSON it may hold control characters as they are. */
const parseLiteral = (literal: string): string =>
  JSON.parse(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what JSON refuses within a string
    literal.replace(/[\u0000-\u001f]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );

/** @throws Error when another version of the package holds the script in another form */
export const readViewer = async (): Promise<string> => {
  const file = createRequire(import.meta.url).resolve(holder);
  const lines = (await readFile(file, 'utf8')).split('\n');
  const line = lines.find((one) => one.startsWith(opening));
  if (line === undefined) throw new Error(`${holder} does not hold the viewer where it was`);
  const script = parseLiteral(line.slice(opening.length, line.lastIndexOf('"') + 1));
  // The address of a source map that we do not serve: a browser's tools would ask for it.
  return script.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n');
};
