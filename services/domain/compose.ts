import type { Platform } from '#schemas/common.ts';
import type { PostBody } from '#schemas/post.ts';
import { contentFor } from './content.ts';
import { type GateError, gate } from './platforms/index.ts';
import { type Destination, scheduleIssues } from './scheduling.ts';

/** Reads a composed body: what is wrong with it in itself, and what the networks of its targets would refuse. */

export interface Issue {
  /** JSON Pointer into the request body. */
  readonly path: string;
  readonly message: string;
}

/** Holds for drafts too: the body contradicts itself. */
export const bodyIssues = (body: PostBody, clientId: string): readonly Issue[] => [
  ...scheduleIssues(body.schedule, body.timezone),
  ...selectionIssues(body, clientId),
  ...body.variants.flatMap((variant, index) =>
    body.variants.findIndex((one) => one.platform === variant.platform) < index
      ? [{ path: `/variants/${index}/platform`, message: `${variant.platform} has a variant already` }]
      : [],
  ),
];

const selectionIssues = ({ targetSelection }: PostBody, clientId: string): readonly Issue[] => {
  const { mode, clientId: group, accountIds } = targetSelection;
  if (mode === 'group') {
    if (group === null) return [{ path: '/targets/clientId', message: 'is required when mode is group' }];
    return group === clientId ? [] : [{ path: '/targets/clientId', message: 'must equal clientId' }];
  }
  if (accountIds === null || accountIds.length === 0) {
    return [{ path: '/targets/accountIds', message: `is required when mode is ${mode}` }];
  }
  return [];
};

const notYet = 'is not supported yet';

/** Members without behaviour so far: refused by name rather than dropped in silence. Drafts may hold them. */
export const unsupportedIssues = (body: PostBody): readonly Issue[] => {
  const issues: Issue[] = [];
  const refuse = (present: boolean, path: string): void => {
    if (present) issues.push({ path, message: notYet });
  };
  refuse(body.mediaIds.length > 0, '/mediaIds');
  refuse(body.thread !== null, '/thread');
  refuse(body.coverMediaId !== null, '/coverMediaId');
  refuse(body.coverFrameMs !== null, '/coverFrameMs');
  refuse(body.mediaAltTexts !== null && Object.keys(body.mediaAltTexts).length > 0, '/mediaAltTexts');
  refuse(body.campaignId !== null, '/campaignId');
  refuse(body.aiDisclosure, '/aiDisclosure');
  for (const [index, variant] of body.variants.entries()) {
    refuse((variant.mediaIdsOverride ?? []).length > 0, `/variants/${index}/mediaIdsOverride`);
    const { firstComment } = variant.overrides;
    refuse(
      firstComment !== undefined && firstComment !== null && firstComment !== '',
      `/variants/${index}/overrides/firstComment`,
    );
  }
  return issues;
};

/** A draft may be empty; what goes out may not, on any of its targets. */
export const emptyIssues = (body: PostBody, destinations: readonly Destination[]): readonly Issue[] => {
  const empty = destinations.filter((destination) => {
    const { content, mediaIds } = contentFor(body, destination.platform);
    return content.trim() === '' && mediaIds.length === 0;
  });
  return empty.map(({ accountId, platform }) => ({
    path: pointer(body, platform, '/content'),
    message: `account ${accountId}: a post needs text or media`,
  }));
};

/** One entry for each target that its network's rules refuse (the first rule it breaks). A network is asked once. */
export const gateIssues = (body: PostBody, destinations: readonly Destination[]): readonly Issue[] => {
  const answers = new Map<Platform, GateError | undefined>();
  return destinations.flatMap(({ accountId, platform }) => {
    if (!answers.has(platform)) answers.set(platform, gate({ platform, ...contentFor(body, platform) })[0]);
    const error = answers.get(platform);
    if (error === undefined) return [];
    return [{ path: pointer(body, platform, error.path), message: `account ${accountId}: ${error.message}` }];
  });
};

/** From a path of the gate, relative to the target, to where the caller wrote it. */
const pointer = (body: PostBody, platform: string, path: string): string => {
  const index = body.variants.findIndex((one) => one.platform === platform);
  const variant = body.variants[index];
  if (variant === undefined) return path;
  if (path === '/content') return variant.contentOverride === null ? path : `/variants/${index}/contentOverride`;
  if (path === '/mediaIds') return variant.mediaIdsOverride === null ? path : `/variants/${index}/mediaIdsOverride`;
  return `/variants/${index}${path}`;
};
