import type { Intent } from '#domain/post.ts';

/**
 * What tells whether targets lag: without times, and of the revises that name a target only the last one. So a post
 * that is revised ever again keeps no longer a row.
 */
export const latestOf = (intents: readonly Intent[]): readonly Intent[] => {
  const revised = new Set<string>();
  const latest: Intent[] = [];
  for (const intent of intents.toReversed()) {
    if (intent.kind === 'cancel') {
      latest.push(intent);
      continue;
    }
    const targetIds = intent.targetIds.filter((id) => !revised.has(id));
    for (const id of targetIds) revised.add(id);
    if (targetIds.length > 0) latest.push({ ...intent, targetIds, times: null });
  }
  return latest.reverse();
};
