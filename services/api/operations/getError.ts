import { ErrorDoc, ErrorParams } from '#schemas/http/error.ts';
import { errorHtml, errorPages, exampleError, showError } from '../error-page.ts';
import { operation } from '../operation.ts';
import { notFound } from '../refusal.ts';

export const getError = operation({
  id: 'getError',
  method: 'GET',
  path: '/errors/{code}',
  tag: 'contract',
  summary: 'What an error code means',
  description: 'The `type` of every problem leads here. A browser gets a page.',
  scope: null,
  idempotent: 'none',
  cost: 1,
  params: ErrorParams,
  answer: ErrorDoc,
  alsoAs: ['text/html'],
  codes: [],
  example: { data: exampleError },
  handle: async ({ deps, params, accepts }) => {
    const page = errorPages.find(({ code }) => code === params.code);
    if (page === undefined) throw notFound('error code');
    if (accepts('application/json', 'text/html') === 'text/html') {
      return { raw: { type: 'text/html', body: errorHtml(page) } };
    }
    return { data: showError(page, deps.baseUrl()) };
  },
});
