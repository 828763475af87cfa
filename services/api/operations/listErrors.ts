import { ErrorDoc } from '#schemas/http/error.ts';
import { wholeList } from '../cursor.ts';
import { errorPages, exampleError, showError } from '../error-page.ts';
import { operation } from '../operation.ts';

export const listErrors = operation({
  id: 'listErrors',
  method: 'GET',
  path: '/errors',
  tag: 'contract',
  summary: 'List every error code and what it means',
  description: 'Codes of refused calls, with their status, and codes of failed targets, assets and report runs.',
  scope: null,
  idempotent: 'none',
  cost: 1,
  answer: ErrorDoc,
  list: true,
  codes: [],
  example: { data: exampleError },
  handle: async ({ deps }) => wholeList(errorPages.map((page) => showError(page, deps.baseUrl()))),
});
