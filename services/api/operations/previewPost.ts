import { PostCreate } from '#schemas/http/post.ts';
import { PostPreview } from '#schemas/http/preview.ts';
import { operation } from '../operation.ts';
import { previewExample } from '../posts/examples.ts';
import { previewOf } from '../posts/preview.ts';

export const previewPost = operation({
  id: 'previewPost',
  method: 'POST',
  path: '/posts/preview',
  tag: 'posts',
  summary: 'Preview a post',
  description: [
    'Says what publishing this body would do now: for each account the text, title, files and times, every rule that it breaks, and every required override that is missing. **It writes nothing**: no post, no event, no key.',
    '`valid` is true exactly when POST /posts would accept the same body at this moment. `problems` lists every reason against it; a refused POST /posts has the code of the first, and the faults of all. What `warnings` say never refuses a body; a warning with `willFail` names the code with which that target would fail when it is published.',
    'With `saveDraft`, `valid` says whether the draft would be accepted, and `problems` with `at: publish` and the verdicts say what its publication needs.',
  ].join('\n\n'),
  scope: 'posts.compose',
  idempotent: 'none',
  cost: 1,
  body: PostCreate,
  answer: PostPreview,
  codes: [],
  example: previewExample,
  handle: async (call) => ({ data: await previewOf(call) }),
});
