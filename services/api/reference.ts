import { mediaFailures } from '#domain/media-failures.ts';
import { failureCodes } from '#domain/platforms/failure-codes.ts';
import { publishFailures } from '#domain/publish-failures.ts';
import { reportFailures } from '#domain/report.ts';
import { ContractDocument } from '#schemas/http/common.ts';
import { ErrorDoc, ErrorParams } from '#schemas/http/error.ts';
import { escapeHtml, page } from '#services/shell/page.ts';
import { wholeList } from './call/cursor.ts';
import { type Category, categoryOf, errors, isErrorCode } from './call/errors.ts';
import { operation, type Tag } from './call/operation.ts';
import { notFound } from './call/refusal.ts';
import { served } from './contract/served.ts';

export const contractTag: Tag = {
  place: 130,
  name: 'contract',
  noun: 'error code',
  about: 'This contract, that of the events, and the catalogue of errors.',
};

/** A page of the catalogue. `status` is null for what a target, an asset or a run fails with: no answer carries it as its code. */
interface ErrorPage {
  readonly code: string;
  readonly status: number | null;
  readonly category: Category | 'media' | 'target' | 'report';
  readonly title: string;
  readonly about: string;
}

const aboutFailures: Readonly<Record<string, string>> = {
  ...Object.fromEntries(publishFailures.map(({ code, message }) => [code, message])),
  ...failureCodes,
};

const pageOf =
  (category: ErrorPage['category'], title: string) =>
  ([code, about]: readonly [code: string, about: string]): ErrorPage => ({
    code,
    status: null,
    category,
    title,
    about,
  });

const ofMedia = Object.entries(mediaFailures).map(pageOf('media', 'A media asset, or one of its renditions, failed'));

const ofTarget = Object.entries(aboutFailures)
  .filter(([code]) => !isErrorCode(code) && !Object.hasOwn(mediaFailures, code))
  .map(pageOf('target', 'A target failed, or was refused by the gate'));

const ofReports = Object.entries(reportFailures).map(pageOf('report', 'A run of a report failed'));

/** The whole catalogue, in the order of `errors`. */
export const errorPages: readonly ErrorPage[] = [
  ...Object.entries(errors).map(([code, entry]) => ({ code, category: categoryOf(entry.status), ...entry })),
  ...ofTarget,
  ...ofMedia,
  ...ofReports,
];

const showError = ({ code, status, category, title, about }: ErrorPage, baseUrl: string) => ({
  object: 'error' as const,
  code,
  type: `${baseUrl}/errors/${code}`,
  status,
  category,
  title,
  about,
});

const errorHtml = ({ code, status, title, about }: ErrorPage): string =>
  page(
    title,
    `<h1>${escapeHtml(title)}</h1>
<p><code>${escapeHtml(code)}</code>${status === null ? '' : ` · HTTP ${status}`}</p>
<p>${escapeHtml(about)}</p>`,
  );

const exampleError = {
  object: 'error',
  code: 'not_found',
  type: 'https://api.example/v1/errors/not_found',
  status: 404,
  category: 'request',
  title: 'The resource does not exist',
  about: 'The API has no such path, or the path has an id that is unknown, malformed or of another workspace.',
};

export const getError = operation({
  id: 'getError',
  method: 'GET',
  path: '/errors/{code}',
  tag: contractTag,
  summary: 'What an error code means',
  description: 'The `type` of every problem leads here. A browser gets a page.',
  scope: null,
  limited: 'open',
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

export const getAsyncapi = operation({
  id: 'getAsyncapi',
  method: 'GET',
  path: '/asyncapi.json',
  tag: contractTag,
  summary: 'Get the contract of the events',
  description: 'AsyncAPI 3.0: every event that webhook endpoints receive, with the headers of its delivery.',
  scope: null,
  limited: 'open',
  idempotent: 'none',
  cost: 1,
  answer: ContractDocument,
  raw: true,
  codes: [],
  example: { data: { asyncapi: '3.0.0' } },
  handle: () => served('asyncapi.json', {}),
});

export const getOpenapi = operation({
  id: 'getOpenapi',
  method: 'GET',
  path: '/openapi.json',
  tag: contractTag,
  summary: 'Get this contract',
  description: 'OpenAPI 3.1: clients are generated from it.',
  scope: null,
  limited: 'open',
  idempotent: 'none',
  cost: 1,
  answer: ContractDocument,
  raw: true,
  codes: [],
  example: { data: { openapi: '3.1.0' } },
  handle: ({ deps }) => served('openapi.json', { servers: [{ url: deps.baseUrl() }] }),
});

export const listErrors = operation({
  id: 'listErrors',
  method: 'GET',
  path: '/errors',
  tag: contractTag,
  summary: 'List every error code and what it means',
  description: 'Codes of refused calls, with their status, and codes of failed targets, assets and report runs.',
  scope: null,
  limited: 'open',
  idempotent: 'none',
  cost: 1,
  answer: ErrorDoc,
  list: true,
  codes: [],
  example: { data: exampleError },
  handle: async ({ deps }) => wholeList(errorPages.map((page) => showError(page, deps.baseUrl()))),
});
