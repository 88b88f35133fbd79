"""What an MCP client may read without a tool call of its model: charts and drug labels, and questions to begin with.

A resource is one call of a read-only tool, with the same data and the same typed failures: an outage is an error,
never an empty chart. The questions are the demo's guided scenarios.
"""

import json
from functools import cache
from typing import Any

import mcp_types as types
import yaml
from mcp.shared.exceptions import MCPError
from mcp.shared.uri_template import UriTemplate

from docgemma.errors import RETRYABLE
from docgemma.paths import PACKAGE
from docgemma.state import ToolResult
from docgemma.tools import mcp_wire as wire

MIME = "application/json"
TEMPLATES = [  # `name`: the tool that reads it
    types.ResourceTemplate(
        name="get_patient_chart", title="Patient chart", uri_template="docgemma://patient/{id}/chart", mime_type=MIME,
        description="The clinical summary of the patient with this id: allergies, problems, medicines, results, notes",
    ),
    types.ResourceTemplate(
        name="check_drug_safety", title="Drug label", uri_template="docgemma://label/{drug}", mime_type=MIME,
        description="The safety sections of the label of this drug, by generic or brand name",
    ),
]  # fmt: skip


async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=TEMPLATES)


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    """None: a list of charts would be a list of patients."""
    return types.ListResourcesResult(resources=[])


def found(uri: str) -> tuple[str, str]:
    """The tool that reads this address, and what it is asked for. Raises MCPError for an address of nothing."""
    for template in TEMPLATES:
        if values := UriTemplate.parse(template.uri_template).match(uri):
            return template.name, str(*values.values())
    raise MCPError(types.INVALID_PARAMS, "There is no such resource; resources/templates/list shows the addresses.")


def as_resource(uri: str, result: ToolResult) -> types.ReadResourceResult:
    """A tool's result as the content of a resource.

    Raises:
        MCPError: the tool failed; `data` holds `error_type` and `details`, as a tool call would.
    """
    body = wire.to_wire(result).structured_content or {}
    if result["error"]:
        code = types.INTERNAL_ERROR if body["error_type"] in RETRYABLE else types.INVALID_PARAMS
        raise MCPError(code, body["text"], {key: body[key] for key in ("error_type", "details")})
    content = types.TextResourceContents(uri=uri, mime_type=MIME, text=json.dumps(body))
    return types.ReadResourceResult(contents=[content])


@cache
def questions() -> dict[str, tuple[str, str]]:
    """Id of a scenario: its title, and what to ask."""
    items = yaml.safe_load((PACKAGE / "demo" / "scenarios.yaml").read_text(encoding="utf-8"))
    return {item["id"]: (item["title"], item.get("prompt") or item["steps"][0]["ask"]) for item in items}


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    shown = [types.Prompt(name=name, title=title, description=ask) for name, (title, ask) in questions().items()]
    return types.ListPromptsResult(prompts=shown)


async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    if params.name not in questions():
        raise MCPError(types.INVALID_PARAMS, "There is no such prompt; prompts/list names them.")
    title, ask = questions()[params.name]
    message = types.PromptMessage(role="user", content=types.TextContent(text=ask))
    return types.GetPromptResult(description=title, messages=[message])
