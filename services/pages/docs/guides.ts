import { readFile } from 'node:fs/promises';

/** The guides, in the order in which a newcomer reads them: the files of `guides/`. */
export const guideNames = [
  'first-post',
  'sandbox',
  'webhooks',
  'media',
  'errors-and-retries',
  'idempotency',
  'generated-clients',
  'agents-and-apps',
  'auditing',
] as const;
export type GuideName = (typeof guideNames)[number];

export interface Guide {
  readonly name: GuideName;
  readonly title: string;
  /** Markdown without the title. */
  readonly text: string;
}

/** @throws Error unless the text begins with a title */
export const guideOf = (name: GuideName, markdown: string): Guide => {
  const [first = '', ...lines] = markdown.split('\n');
  if (!first.startsWith('# ')) throw new Error(`the guide ${name} begins without a title`);
  return { name, title: first.slice(2), text: lines.join('\n').trim() };
};

export const readGuides = (): Promise<readonly Guide[]> =>
  Promise.all(
    guideNames.map(async (name) =>
      guideOf(name, await readFile(new URL(`guides/${name}.md`, import.meta.url), 'utf8')),
    ),
  );
