import { IdParams } from '#schemas/http/common.ts';
import { Post } from '#schemas/http/post.ts';
import { operation } from '../operation.ts';
import { postDataExample } from '../posts/examples.ts';
import { shownPosts } from '../posts/shown.ts';
import { notFound } from '../refusal.ts';
import { readRow } from '../rows.ts';

export const getPost = operation({
  id: 'getPost',
  method: 'GET',
  path: '/posts/{id}',
  tag: 'posts',
  summary: 'Get a post with its variants and targets',
  description: 'Right after a write of your own, send its X-Consistency-Token: the answer then shows that write.',
  scope: 'posts.read',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Post,
  codes: [],
  example: { data: postDataExample },
  handle: async (call) => {
    const posts = shownPosts(call.deps.pool);
    const shown = await readRow(call, 'post', ['posts'], (id) => posts.get(call.workspaceId, id));
    if (shown.isDiscarded) throw notFound('post');
    const { json, revision } = shown;
    return json === null ? { data: shown.post, revision } : { json, revision };
  },
});
