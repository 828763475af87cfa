import type { Contract, OperationNode, TagNode } from './contract.ts';
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

type Paths = Contract['paths'];

const mapOperations = (paths: Paths, change: (operation: OperationNode) => OperationNode): Paths =>
  Object.fromEntries(
    Object.entries(paths).map(([path, operations]) => [
      path,
      Object.fromEntries(Object.entries(operations).map(([method, one]) => [method, change(one)])),
    ]),
  );

/** Pure. @param baseUrl takes the place of the contract's own server address in every text, so that samples run. */
export const referenceOf = (contract: Contract, guides: readonly Guide[], baseUrl: string): string => {
  const exampleUrl = contract.servers[0]?.url ?? '';
  const samples = allSamples(contract, exampleUrl);
  const document = {
    ...contract,
    tags: [...guides.map(ofGuide), ...contract.tags.map(named)],
    'x-tagGroups': [
      { name: 'Guides', tags: guides.map(({ name }) => guideTag(name)) },
      { name: 'Operations', tags: contract.tags.map(({ name }) => name) },
    ],
    paths: mapOperations(contract.paths, (operation) => ({
      ...operation,
      'x-codeSamples': samples.get(operation.operationId) ?? [],
    })),
  };
  return JSON.stringify(document).replaceAll(exampleUrl, baseUrl);
};
