import { readFileSync } from 'node:fs';
import type { GuideName } from '#services/pages/docs/guides.ts';

/** The code in the guides of the reference, as a reader copies it. */

export type CodeLanguage = 'bash' | 'ts' | 'python' | 'json';

const text = (name: GuideName): string =>
  readFileSync(new URL(`../../services/pages/docs/guides/${name}.md`, import.meta.url), 'utf8');

/** The address that stands in the guides; the server puts its own in its place. */
export const guideUrl = 'https://api.example/v1';

/** The blocks of one language in their order, for a server at this address. */
export const codeOf = (name: GuideName, language: CodeLanguage, baseUrl: string = guideUrl): readonly string[] =>
  [...text(name).matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .filter(([, one]) => one === language)
    .map(([, , code = '']) => code.replaceAll(guideUrl, baseUrl));

/** The one block of a language. @throws Error where there are none or several */
export const onlyCodeOf = (name: GuideName, language: CodeLanguage, baseUrl?: string): string => {
  const [code, ...more] = codeOf(name, language, baseUrl);
  if (code === undefined || more.length > 0) throw new Error(`${name} has not one block of ${language}`);
  return code;
};

/** Languages of all blocks: a block of another language would run in no test. */
export const languagesIn = (name: GuideName): readonly string[] =>
  [...text(name).matchAll(/^```(\S*)\n[\s\S]*?^```$/gm)].map(([, language = '']) => language);
