import { published } from '#projections/webhooks/types.ts';
import { codeOf, production } from './sources.ts';

/** Event types that a decider names where it decides, not only where it folds, compares or takes a type apart. */
export const appendedEvents = (): ReadonlySet<string> => {
  const deciders = production.filter((file) => file.startsWith('services/domain/'));
  const named = deciders.flatMap((file) => [
    ...codeOf(file)
      .replaceAll(/\bExtract<[^>]*>/g, '')
      .matchAll(/(?<!\bcase |[!=]== )'([A-Z][A-Za-z]+)'/g),
  ]);
  return new Set(named.map(([, name = '']) => name));
};

/** The dispatcher makes it when a caller asks for a test delivery; no event of its own stands behind it. */
const askedFor = 'webhook.test';

/** Public types that some appended event gives. */
export const mintedTypes = (): ReadonlySet<string> => {
  const appended = appendedEvents();
  const given = [...published].filter(([event]) => appended.has(event.slice(event.indexOf('/') + 1)));
  return new Set([askedFor, ...given.flatMap(([, types]) => types)]);
};
