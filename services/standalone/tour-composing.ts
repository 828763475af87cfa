import type { Screen } from './screen.ts';
import type { TourClient } from './tour-client.ts';

/** A preview of the tour's post, and further posts in one call. */

interface Preview {
  readonly valid: boolean;
  readonly verdicts: readonly {
    readonly platform: string;
    readonly warnings: readonly { readonly code: string; readonly willFail: boolean }[];
  }[];
}

interface Bulk {
  readonly results: readonly {
    readonly post?: { readonly targets: readonly { readonly id: string }[] };
    readonly error?: { readonly errors: readonly { readonly path: string; readonly message: string }[] };
  }[];
  readonly created: number;
  readonly rejected: number;
}

interface Bodied {
  readonly variants: readonly { readonly platform: string }[];
}

/** Previews the post without the settings of one network, then as it is. */
export const showPreview = async (http: TourClient, screen: Screen, body: Bodied): Promise<void> => {
  const variants = body.variants.map((one) => (one.platform === 'tiktok' ? { ...one, overrides: {} } : one));
  for (const sent of [{ ...body, variants }, body]) {
    const { valid, verdicts } = await http.post<Preview>('/posts/preview', sent);
    const failing = verdicts.flatMap(({ platform, warnings }) =>
      warnings.filter(({ willFail }) => willFail).map(({ code }) => `${platform} would fail with ${code}`),
    );
    const what = failing.length === 0 ? `${verdicts.length} targets would go out` : failing.join(', ');
    screen.event('post previewed', `${valid ? 'accepted' : 'refused'}; ${what}; nothing is written`);
  }
};

const weekMs = 7 * 86_400_000;

/** Three posts for next week, of which one does not fit; then all their targets are canceled, in one call each. */
export const showBulk = async (http: TourClient, screen: Screen, clientId: string): Promise<void> => {
  const scheduledAt = new Date(Date.now() + weekMs).toISOString();
  const posts = ['Next week: cinnamon buns.', 'Next week: a new roast.', 'Far too long. '.repeat(30)].map(
    (content) => ({
      clientId,
      content,
      targets: { mode: 'group', clientId, platforms: ['x', 'bluesky'] },
      schedule: { type: 'at', scheduledAt },
    }),
  );
  const { results, created, rejected } = await http.post<Bulk>('/posts/bulk', { posts });
  const why = results
    .flatMap(({ error }) => error?.errors.slice(0, 1) ?? [])
    .map(({ path, message }) => `${path} ${message}`);
  screen.event(`${posts.length} posts in one call`, `${created} created, ${rejected} rejected: ${why.join(', ')}`);
  const targetIds = results.flatMap(({ post }) => post?.targets.map(({ id }) => id) ?? []);
  const done = await http.post<{ results: readonly { readonly ok: boolean }[] }>('/post-targets/bulk', {
    action: 'cancel',
    targetIds,
  });
  const canceled = done.results.filter(({ ok }) => ok).length;
  screen.event(`${targetIds.length} targets in one call`, `${canceled} canceled`);
};
