//! Tests of the rules in `build/`, with messages of every shape.

mod v1 {
    tonic::include_proto!("assay.shapes.v1");
}

use serde_json::{Value, json};
use v1::{Inner, InnerList, Shape, ShapeInput};

use assay_proto::{
    Changes, CustomerId, Fault, TestType, Timestamp,
    catalog::{EnvironmentInput, SubjectInput, TestCaseInput, TestPlanInput, TestSetInput},
    identity::{CustomerInput, LoginInput, UserGroupInput, UserInput},
    unknown_field,
};

#[test]
fn unset_fields_are_null_or_empty_in_json_and_never_absent() {
    let shape = Shape { plain_enum: TestType::Default.into(), ..Shape::default() };
    let shape = Shape { nested: Some(Inner::default()), at: Some(Timestamp::default()), ..shape };
    assert_eq!(
        serde_json::to_value(shape).unwrap(),
        json!({
            "Id": "", "ParentId": null, "FileId": null, "PlainEnum": "Default",
            "OptionalEnum": null, "Enums": [], "Nested": {"Name": ""}, "OptionalNested": null,
            "Inners": [], "InnerList": null, "At": "1970-01-01T00:00:00.000000Z", "Until": null,
            "Tags": [], "number": 0.0,
        })
    );
}

#[test]
fn messages_round_trip_through_json() {
    let shape = Shape {
        plain_enum: TestType::Performance.into(),
        optional_enum: Some(TestType::Stability.into()),
        enums: vec![TestType::Default.into(), TestType::Stability.into()],
        nested: Some(Inner { name: "n".into() }),
        inner_list: Some(InnerList { items: vec![Inner { name: "i".into() }] }),
        at: Some(serde_json::from_value(json!("2026-11-20T23:34:00.123456789+01:00")).unwrap()),
        ..Shape::default()
    };
    let json = serde_json::to_value(&shape).unwrap();
    assert_eq!(json["At"], "2026-11-20T22:34:00.123456Z");
    assert_eq!(json["InnerList"], json!([{"Name": "i"}]));
    assert_eq!(json["Enums"], json!(["Default", "Stability"]));
    assert_eq!(serde_json::from_value::<Shape>(json).unwrap(), shape);
}

#[test]
fn inputs_reject_unknown_fields_and_values_of_the_wrong_type() {
    let read = |json: Value| serde_json::from_value::<ShapeInput>(json);
    assert_eq!(read(json!({"email": "a"})).unwrap().name, "a");
    let unknown = read(json!({"Nmae": "a"})).unwrap_err().to_string();
    let advice = "no such field; did you mean `Name`?".to_owned();
    assert_eq!(unknown_field(&unknown), Some(("Nmae", advice)));
    assert_eq!(read(json!({"Enums": ["Default"]})).unwrap().enums, [1]);
    for wrong in [
        json!({"Name": null}),
        json!({"TestType": null}),
        json!({"TestType": "Unspecified"}),
        json!({"OptionalEnum": "Nope"}),
        json!({"Enums": null}),
        json!({"Inners": [{}]}),
    ] {
        assert!(read(wrong.clone()).is_err(), "{wrong} was accepted");
    }
}

#[test]
fn a_message_within_an_input_is_read_only_from_an_object_or_null() {
    let read = |gate: Value| serde_json::from_value::<TestSetInput>(json!({"Gate": gate}));
    let gate = read(json!({"MaxFlakyTests": 2.0})).unwrap().gate.unwrap();
    assert!(read(json!({"MaxFlakyTsts": 2})).is_err());
    assert_eq!((gate.max_flaky_tests, gate.min_pass_rate), (Some(2), None));
    assert!(read(json!({})).unwrap().gate.is_some());
    assert_eq!(read(Value::Null).unwrap().gate, None);
    for wrong in [json!([]), json!([1, true]), json!("strict"), json!(1)] {
        let error = read(wrong).unwrap_err().to_string();
        assert!(error.contains("expected an object"), "{error}");
    }
}

#[test]
fn integers_may_have_a_fraction_of_zero() {
    let read = |json: Value| serde_json::from_value::<ShapeInput>(json);
    let input = json!({"Count": 2.0, "Limit": -0.0, "Size": 1e15, "Numbers": [1, 2.0, 3e0]});
    let input = read(input).unwrap();
    assert_eq!((input.count, input.limit, input.size), (2, Some(0), 1_000_000_000_000_000));
    assert_eq!(input.numbers, [1, 2, 3]);
    assert_eq!(read(json!({"Limit": null})).unwrap().limit, None);
    assert_eq!(read(json!({"Size": i64::MIN})).unwrap().size, i64::MIN);
    for wrong in [
        json!({"Count": 2.5}),
        json!({"Count": 2_147_483_648_i64}),
        json!({"Count": 1e12}),
        json!({"Count": "2"}),
        json!({"Count": null}),
        json!({"Limit": 0.1}),
        json!({"Limit": true}),
        json!({"Size": 9_223_372_036_854_775_808_u64}),
        json!({"Size": 9.3e18}),
        json!({"Size": 1e300}),
        json!({"Numbers": [1.5]}),
        json!({"Numbers": 1}),
    ] {
        let error = read(wrong.clone()).expect_err(&wrong.to_string()).to_string();
        assert!(error.contains("expected i") || error.contains("expected a seq"), "{error}");
    }
}

#[test]
fn changes_apply_to_named_fields_only() {
    let set = TestSetInput {
        name: "old".into(),
        tags: Some("a".into()),
        priority: Some("high".into()),
        ..TestSetInput::default()
    };
    let changes = TestSetInput { name: "new".into(), ..TestSetInput::default() };
    let fields = ["Name", "Tags", "Unknown"].map(str::to_owned);
    let changed = set.clone().with(changes, &fields);
    assert_eq!(changed, TestSetInput { name: "new".into(), tags: None, ..set });
    assert!(TestPlanInput::FIELDS.contains(&"MinimumDurationInMin"));
}

#[test]
fn ids_are_hyphenated_lower_case_uuids() {
    let id = CustomerId::new().to_string();
    assert!(CustomerId::from_path(&id).is_ok());
    for other in [id.to_uppercase(), id.replace('-', ""), format!("{{{id}}}"), "0".to_owned()] {
        assert!(
            matches!(CustomerId::from_path(&other), Err(Fault::NotFound(_))),
            "{other} was accepted"
        );
    }
}

/// Clients send records back as they have read them.
#[test]
fn inputs_know_the_fields_of_their_records_and_no_others() {
    fn known<T: Changes>(fields: &str) {
        for field in fields.split(' ') {
            assert_eq!(T::check_name(field), Ok(()), "{field}");
        }
        let is_open = T::IS_OPEN;
        assert_eq!(T::check_name("TargetGroop").is_ok(), is_open);
    }
    known::<TestCaseInput>(
        "Id Identifier Name Description LastPlanStatus LastReportStatus LastResult LastSwName \
         LastSwIdentifier ExecutionStatistics DataVersion Archived TestPlanList ProjectId",
    );
    known::<TestSetInput>(
        "Id TestCases Archived DataVersion Description LastExecuted LastExecutionStatistic \
         LastRunDuration LastSubjectId LastSwIdentifier LastSwName Name Priority ProjectId \
         SelectedEnvironmentId SelectedSubjectId Tags StopOnFailure TimeOut",
    );
    known::<SubjectInput>(
        "BaseSubjectIdentifier DataVersion FrameworkFileId Id Identifier InstallationFileId \
         InstallationFileName InstructionFileId InstructionFileName Name ProjectId SoftwareFileId \
         SoftwareFileName SubjectType Uri BaseSubjectId SoftwareFileSize ModificationAllowed \
         NeedsPublicIp Variables Archived PassRate",
    );
    known::<TestPlanInput>(
        "Id Status InputFileId SupportingFilesId AutomationSupportingFilesId \
         AutomatedTestContainerId TestCaseId Description TestType MonitoringMessage DataVersion \
         Instances Revision MinimumDurationInMin Variables TestReports ExecutionStatistics",
    );
    known::<EnvironmentInput>(
        "Archived ContainedSubject DataVersion FileProjectId Id ImageFileId Name Password ProjectId \
         TargetGroup Username ImageFileSize ModificationAllowed",
    );
    known::<CustomerInput>("Archived Name Subdomain Appliances Id DataVersion UserGroups");
    known::<UserGroupInput>("Name Description UsagePermission Id DataVersion Archived");
    // Clients name the email in several ways, and some send all of them.
    known::<LoginInput>("Email email UserEmail Password");
    known::<UserInput>("DisplayName Email email UserGroup");
}
