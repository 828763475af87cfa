import { type Contract, nameOfRef, type OperationNode, type PathNode, type TagNode } from './contract.ts';
import type { Guide } from './guides.ts';
import { allSamples } from './samples.ts';

/**
 * The document that the viewer shows: the contract, with the guides as tags in front and code samples at every
 * operation. The contract itself has neither, because generators copy its texts into every file they make.
 */

/** `post-targets` → `Post targets`. */
const titleOf = (tag: string): string => {
  const words = tag.replaceAll(/[-_]/g, ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
};

export const guideTag = (name: string): string => `guide-${name}`;

const ofGuide = ({ name, title, text }: Guide): TagNode => ({
  name: guideTag(name),
  'x-displayName': title,
  description: text,
});

const named = (tag: TagNode): TagNode => ({ 'x-displayName': titleOf(tag.name), ...tag });

/** The tag of the events, which have a group of their own beside the operations. */
const eventTag = 'events';

const mapOperations = (path: PathNode, change: (operation: OperationNode) => OperationNode): PathNode =>
  Object.fromEntries(Object.entries(path).map(([method, one]) => [method, change(one)]));

/** The viewer titles an event by its summary, but readers look for its type. */
const eventsOf = ({ webhooks, components }: Contract): Readonly<Record<string, PathNode>> =>
  Object.fromEntries(
    Object.entries(webhooks).map(([type, { $ref }]) => {
      const name = nameOfRef($ref);
      const path = components.pathItems[name];
      if (path === undefined) throw new Error(`the contract has no path item ${name}`);
      const titled = mapOperations(path, (one) => ({
        ...one,
        summary: type,
        description: [one.summary, one.description].filter((text) => text !== undefined).join(' '),
      }));
      return [type, titled];
    }),
  );

/** Pure. @param baseUrl takes the place of the contract's own server address in every text, so that samples run. */
export const referenceOf = (contract: Contract, guides: readonly Guide[], baseUrl: string): string => {
  const exampleUrl = contract.servers[0]?.url ?? '';
  const samples = allSamples(contract, exampleUrl);
  const tags = contract.tags.map(({ name }) => name);
  const document = {
    ...contract,
    tags: [...guides.map(ofGuide), ...contract.tags.map(named)],
    'x-tagGroups': [
      { name: 'Guides', tags: guides.map(({ name }) => guideTag(name)) },
      { name: 'Operations', tags: tags.filter((tag) => tag !== eventTag) },
      { name: 'Webhooks', tags: tags.filter((tag) => tag === eventTag) },
    ],
    paths: Object.fromEntries(
      Object.entries(contract.paths).map(([path, operations]) => [
        path,
        mapOperations(operations, (one) => ({ ...one, 'x-codeSamples': samples.get(one.operationId) ?? [] })),
      ]),
    ),
    webhooks: eventsOf(contract),
  };
  return JSON.stringify(document).replaceAll(exampleUrl, baseUrl);
};
