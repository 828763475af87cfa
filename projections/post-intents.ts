import type { Intent } from '#domain/post.ts';

/**
 * What tells whether targets lag: without times, and of the revises and of the releases that name a target only the
 * last one. So a post that is revised ever again keeps no longer a row.
 */
export const latestOf = (intents: readonly Intent[]): readonly Intent[] => {
  const seen = { revise: new Set<string>(), release: new Set<string>() };
  const latest: Intent[] = [];
  for (const intent of intents.toReversed()) {
    if (intent.kind === 'cancel') {
      latest.push(intent);
      continue;
    }
    const known = seen[intent.kind];
    const targetIds = intent.targetIds.filter((id) => !known.has(id));
    for (const id of targetIds) known.add(id);
    if (targetIds.length === 0) continue;
    latest.push(intent.kind === 'revise' ? { ...intent, targetIds, times: null } : { ...intent, targetIds });
  }
  return latest.reverse();
};
