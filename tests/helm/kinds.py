# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What Kubernetes and the Prometheus Operator take, unknown fields refused.

A cluster drops unknown fields of custom resources in silence: a misspelt one has no effect and no
message. Of the operator's kinds, what the chart uses is known here, and anything else is an error.
"""

from typing import Any

import jsonschema
import kubernetes_validate  # type: ignore[import-untyped]

KUBERNETES = ("1.26", "1.37")
"""The oldest that Chart.yaml allows, and the newest that is known here."""

_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_LIMIT = {"type": "integer", "minimum": 1}
_DURATION = {
    "type": "string",
    "pattern": r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$",
    "minLength": 1,
}


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": properties,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": items}


_RELABELING = _object(
    "action",
    sourceLabels=_list(_TEXT),
    separator=_TEXT,
    targetLabel=_TEXT,
    regex=_TEXT,
    replacement=_TEXT,
    action={"enum": ["replace", "keep", "drop", "labeldrop", "labelkeep", "labelmap"]},
)


def _resource(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return _object(
        "apiVersion kind metadata spec",
        apiVersion={"const": "monitoring.coreos.com/v1"},
        kind={"const": kind},
        metadata=_object("name namespace labels", name=_TEXT, namespace=_TEXT, labels=_TEXTS),
        spec=spec,
    )


_OPERATOR = {
    "PodMonitor": _resource(
        "PodMonitor",
        _object(
            "selector podMetricsEndpoints",
            jobLabel=_TEXT,
            selector=_object("matchLabels", matchLabels=_TEXTS),
            sampleLimit=_LIMIT,
            labelLimit=_LIMIT,
            labelNameLengthLimit=_LIMIT,
            labelValueLengthLimit=_LIMIT,
            podMetricsEndpoints=_list(
                _object(
                    "port",
                    port=_TEXT,
                    path=_TEXT,
                    interval=_DURATION,
                    scrapeTimeout=_DURATION,
                    honorLabels={"type": "boolean"},
                    relabelings=_list(_RELABELING),
                    metricRelabelings=_list(_RELABELING),
                )
            ),
        ),
    ),
    "PrometheusRule": _resource(
        "PrometheusRule",
        _object(
            "groups",
            groups=_list(
                _object(
                    "name rules",
                    name=_TEXT,
                    interval=_DURATION,
                    rules=_list(
                        {
                            "oneOf": [
                                _object("record expr", record=_TEXT, expr=_TEXT),
                                _object(
                                    "alert expr labels annotations",
                                    alert=_TEXT,
                                    expr=_TEXT,
                                    **{"for": _DURATION, "keep_firing_for": _DURATION},
                                    labels=_TEXTS,
                                    annotations=_TEXTS,
                                ),
                            ]
                        }
                    ),
                )
            ),
        ),
    ),
}


def validate(manifest: dict[str, Any]) -> None:
    """Raises where a cluster would refuse a manifest, or not do what it says."""
    if manifest["kind"] in _OPERATOR:
        jsonschema.validate(manifest, _OPERATOR[manifest["kind"]])
        return
    for version in KUBERNETES:
        kubernetes_validate.validate(manifest, version, strict=True)
